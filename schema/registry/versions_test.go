package registry

import (
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestVersionsOfASubject(t *testing.T) {
	r := fake(t)
	c := newClient(t, Options{URLs: []string{r.URL()}})
	if text, err := c.Latest(t.Context(), "s-value"); text != "" || err != nil {
		t.Errorf("latest of a subject that is not there: %q, %v", text, err)
	}
	none := func(string) bool { t.Error("a version of nothing"); return true }
	if err := c.Earlier(t.Context(), "s-value", 9, none); err != nil {
		t.Error(err)
	}
	var texts []string
	for i := range 12 { // two digits: as text, 10 would stand before 9
		text := `{"type":"fixed","name":"f","size":` + strconv.Itoa(i+1) + `}`
		r.SeedSchema("s-value", i+1, i+1, sr.Schema{Schema: text})
		texts = append(texts, text)
	}
	if text, err := c.Latest(t.Context(), "s-value"); text != texts[11] || err != nil {
		t.Errorf("latest: %q, %v", text, err)
	}
	for _, bound := range []int{3, 100} {
		var seen []string
		err := c.Earlier(t.Context(), "s-value", bound, func(text string) bool {
			seen = append(seen, text)
			return len(seen) < 5
		})
		want := slices.Clone(texts[max(12-bound, 7):])
		slices.Reverse(want)
		if err != nil || !slices.Equal(seen, want) {
			t.Errorf("bound %d: %v, %v; want %v", bound, seen, err, want)
		}
	}
}

func TestCompatibleAsksOnly(t *testing.T) {
	var asked string
	answer := `{"is_compatible":false}`
	s := server(t, func(w http.ResponseWriter, req *http.Request) {
		asked = req.Method + " " + req.URL.Path
		if answer == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(answer))
	})
	c := newClient(t, Options{URLs: []string{s.URL}})
	if is, err := c.Compatible(t.Context(), "s-value", schemaV1); is || err != nil {
		t.Errorf("%v, %v", is, err)
	}
	if asked != "POST /compatibility/subjects/s-value/versions" {
		t.Errorf("asked %s", asked)
	}
	answer = `{"is_compatible":true}`
	if is, err := c.Compatible(t.Context(), "s-value", schemaV1); !is || err != nil {
		t.Errorf("%v, %v", is, err)
	}
	answer = ""
	_, err := c.Compatible(t.Context(), "s-value", schemaV1)
	wantCode(t, err, fault.RegistryUnreachable)
}
