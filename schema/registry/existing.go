package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Registered returns the id of a schema that its subject must have already; nothing is registered.
// One that it does not have is schema_rejected.
func (c *Client) Registered(ctx context.Context, subject, schema string) (int, error) {
	return c.remembered(subject, schema, func() (int, error) {
		var id int
		err := c.try(ctx, func(ctx context.Context, client *sr.Client) error {
			s, err := client.LookupSchema(c.params(ctx), subject, sr.Schema{Schema: schema})
			id = s.ID
			if err == nil && id <= 0 {
				return errNoID
			}
			return err
		})
		if answered(err, http.StatusNotFound) {
			return 0, fault.New(fault.SchemaRejected, "subject "+subject+" does not have the schema of "+
				"the events").With("auto.register.schemas is false", "the schema, registered",
				registerIt+", or set use.latest.version when a version differs in nothing but defaults "+
					"and documentation")
		}
		return id, err
	})
}

const registerIt = "register what `tidemark explain --schemas` prints, or set " +
	"auto.register.schemas: true"

// UsableLatest returns the id of a subject's newest version, when events written with our schema are
// bytes of that version. Else it is schema_rejected, with the difference.
func (c *Client) UsableLatest(ctx context.Context, subject, schema string) (int, error) {
	return c.remembered(subject, schema, func() (int, error) {
		var found sr.SubjectSchema
		err := c.try(ctx, func(ctx context.Context, client *sr.Client) error {
			var err error
			found, err = client.SchemaByVersion(ctx, subject, latestVersion)
			if err == nil && found.ID <= 0 {
				return errNoID
			}
			return err
		})
		if answered(err, http.StatusNotFound) {
			return 0, fault.New(fault.SchemaRejected, "subject "+subject+" has no schema").With(
				"auto.register.schemas is false", "one that is like the events'", registerIt)
		}
		if err != nil {
			return 0, err
		}
		difference, err := Difference(schema, found.Schema.Schema)
		if err != nil {
			return 0, fault.Wrap(fault.SchemaRejected, fmt.Sprintf("version %d of subject %s",
				found.Version, subject), err)
		}
		if difference != "" {
			return 0, fault.New(fault.SchemaRejected, fmt.Sprintf("version %d of subject %s, the latest, "+
				"is not what the events are written with", found.Version, subject)).With(difference,
				"one that differs in defaults, documentation and properties only", registerIt)
		}
		return found.ID, nil
	})
}

// params makes the registry compare and store schemas in their normal form, where that was asked for.
func (c *Client) params(ctx context.Context) context.Context {
	if c.normalize {
		return sr.WithParams(ctx, sr.Normalize)
	}
	return ctx
}

// remembered returns the id that a subject's schema had before, or asks for it.
func (c *Client) remembered(subject, schema string, ask func() (int, error)) (int, error) {
	key := subjectSchema{subject, schema}
	c.mu.Lock()
	id := c.ids[key]
	c.mu.Unlock()
	if id > 0 {
		return id, nil
	}
	id, err := ask()
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	c.ids[key] = id
	c.mu.Unlock()
	return id, nil
}

// RecordName is the full name of the record that a schema is of.
func RecordName(schema string) string {
	var r struct{ Name, Namespace string }
	if json.Unmarshal([]byte(schema), &r) != nil {
		return ""
	}
	return nameOf(r.Name, r.Namespace)
}
