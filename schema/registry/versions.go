package registry

import (
	"context"
	"net/http"
	"slices"

	"github.com/twmb/franz-go/pkg/sr"
)

// latestVersion and allVersions are pkg/sr's words for them.
const (
	latestVersion = -1
	allVersions   = -2
)

// Latest returns the text of a subject's newest version, "" when the subject has none.
func (c *Client) Latest(ctx context.Context, subject string) (string, error) {
	return c.version(ctx, subject, latestVersion)
}

// Earlier calls see with the texts of a subject's versions, the newest first, at most bound of
// them, until it returns false.
func (c *Client) Earlier(
	ctx context.Context, subject string, bound int, see func(text string) bool,
) error {
	var numbers []int
	err := c.try(ctx, func(ctx context.Context, client *sr.Client) error {
		var err error
		numbers, err = client.SubjectVersions(ctx, subject)
		return err
	})
	if answered(err, http.StatusNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	slices.Sort(numbers)
	for i := len(numbers) - 1; i >= max(0, len(numbers)-bound); i-- {
		text, err := c.version(ctx, subject, numbers[i])
		if err != nil {
			return err
		}
		if text != "" && !see(text) {
			return nil
		}
	}
	return nil
}

// version returns the text of one version, "" when there is none.
func (c *Client) version(ctx context.Context, subject string, number int) (string, error) {
	var text string
	err := c.try(ctx, func(ctx context.Context, client *sr.Client) error {
		s, err := client.SchemaByVersion(ctx, subject, number)
		text = s.Schema.Schema
		return err
	})
	if answered(err, http.StatusNotFound) {
		return "", nil
	}
	return text, err
}

// Compatible asks whether a schema may follow what the subject holds, under its level. Nothing is
// registered.
func (c *Client) Compatible(ctx context.Context, subject, schema string) (bool, error) {
	var is bool
	err := c.try(ctx, func(ctx context.Context, client *sr.Client) error {
		r, err := client.CheckCompatibility(ctx, subject, allVersions, sr.Schema{Schema: schema})
		is = r.Is
		return err
	})
	return is, err
}
