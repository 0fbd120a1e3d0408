package preflight

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/connector/capture"
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

// stream reads a slot under the application name "reader" until the returned function is called.
func (w *world) stream(t *testing.T, slot string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	conn, err := capture.Dial(ctx, w.options.Connector.Database, "reader")
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	s, err := conn.Start(ctx, capture.StartOptions{
		Slot: slot, Publication: "tidemark", Start: 1, ServerVersion: 180000,
		StatusInterval: time.Second,
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	return func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		cancel()
	}
}
