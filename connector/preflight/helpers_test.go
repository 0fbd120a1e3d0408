package preflight

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

// topic makes a topic as nobody in particular.
func (w *world) topic(t *testing.T, name string, configs map[string]string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.broker.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	settings := map[string]*string{}
	for k, v := range configs {
		settings[k] = &v
	}
	_, err = kadm.NewClient(client).CreateTopic(context.Background(), 1, 1, settings, name)
	if err != nil {
		t.Fatal(err)
	}
}

// registryLevel sets the registry's own compatibility level.
func (w *world) registryLevel(t *testing.T, level string) {
	t.Helper()
	client, err := sr.NewClient(sr.URLs(w.registry.URL))
	if err != nil {
		t.Fatal(err)
	}
	var l sr.CompatibilityLevel
	if err := l.UnmarshalText([]byte(level)); err != nil {
		t.Fatal(err)
	}
	for _, r := range client.SetCompatibility(context.Background(),
		sr.SetCompatibility{Level: l}, sr.GlobalSubject) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

// find returns the findings of a check that failed.
func find(r *Report, check string) []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if f.Check == check && f.Status == Failed {
			out = append(out, f)
		}
	}
	return out
}
