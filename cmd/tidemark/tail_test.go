package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
)

// tailFile starts a broker and a registry with two connectors' topics and returns a file for them.
func tailFile(t *testing.T) string {
	t.Helper()
	broker, err := testenv.StartFakeBroker(testenv.FakeBrokerOptions{Options: []kfake.Opt{
		kfake.SeedTopics(1, "one.public.a", "two.public.b", "one.tidemark-events"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	reg, err := testenv.StartFakeRegistry(testenv.FakeRegistryOptions{Compatible: avrocompat.Check})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reg.Close() })
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.ProducerLinger(0))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, r := range []*kgo.Record{
		{Topic: "one.public.a", Value: []byte(`{"n": 1}`)},
		{Topic: "one.public.a", Value: []byte(`{"n": 2}`)},
		{Topic: "two.public.b", Value: []byte(`{"n": 3}`)},
		{Topic: "one.tidemark-events", Value: []byte(`{"n": 4}`)},
	} {
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "tidemark.yaml")
	text := fmt.Sprintf("worker:\n  bootstrap.servers: %s\n  schema.registry.url: %s\nconnectors:\n",
		strings.Join(broker.Addrs(), ","), reg.URL)
	for _, name := range []string{"one", "two"} {
		text += fmt.Sprintf("  %s:\n    topic.prefix: %s\n    database.hostname: localhost\n"+
			"    database.user: u\n    database.password: p\n    database.dbname: d\n"+
			"    slot.name: %s\n    publication.name: %s\n", name, name, name, name)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTailPrintsTheTopicsThatWereAskedFor(t *testing.T) {
	t.Parallel()
	file := tailFile(t)
	for _, test := range []struct {
		name string
		o    tailOptions
		want string // the values of n, in the order of a topic
	}{
		{"all connectors", tailOptions{exit: true}, "1 2 3"},
		{"one connector", tailOptions{exit: true, connector: "two"}, "3"},
		{"a topic", tailOptions{exit: true, topics: []string{"one.tidemark-events"}}, "4"},
		{"a count", tailOptions{beginning: true, connector: "one", count: 1}, "1"},
	} {
		var out strings.Builder
		test.o.file, test.o.json, test.o.log = file, true, slog.New(slog.DiscardHandler)
		if err := tail(t.Context(), &out, &test.o); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		var got []string
		for n := '1'; n <= '4'; n++ {
			if strings.Contains(out.String(), `"value":{"n":`+string(n)+`}`) {
				got = append(got, string(n))
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %v, want %s, in\n%s", test.name, got, test.want, out.String())
		}
	}
}

func TestTailRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	file := tailFile(t)
	for name, test := range map[string]struct {
		o    tailOptions
		code fault.Code
		text string
	}{
		"no file":         {tailOptions{}, fault.ConfigInvalid, "-c FILE"},
		"other connector": {tailOptions{file: file, connector: "x"}, fault.ConfigInvalid, "one, two"},
		"both": {
			tailOptions{file: file, connector: "one", topics: []string{"t"}},
			fault.ConfigInvalid, "--connector goes without TOPIC",
		},
		"no such topic": {
			tailOptions{file: file, topics: []string{"nowhere"}}, fault.TopicMissing, "topic nowhere",
		},
	} {
		test.o.log = slog.New(slog.DiscardHandler)
		err := tail(t.Context(), &strings.Builder{}, &test.o)
		if err == nil || fault.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
