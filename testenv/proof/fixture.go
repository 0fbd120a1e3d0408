package proof

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
	"github.com/tidemark-cdc/tidemark/testenv/workload"
)

// NewRig returns a rig on a database of the shared PostgreSQL, with a broker and a registry in this
// process. configure changes it before its configuration is written; nil changes nothing. Its
// connector is killed at the test's end.
func NewRig(
	t *testing.T, binary string, o workload.Options, configure func(*Rig),
) (*Rig, *testenv.FakeBroker) {
	t.Helper()
	pg := testenv.SharedPostgres(t, "18")
	broker, err := testenv.StartFakeBroker(testenv.FakeBrokerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	registry, err := testenv.StartFakeRegistry(testenv.FakeRegistryOptions{Compatible: avrocompat.Check})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() })
	r := &Rig{
		Binary: binary, Postgres: pg, Database: testenv.NewDatabase(t, pg), Brokers: broker.Addrs(),
		Registry: registry.URL, Dir: t.TempDir(), Keys: map[string]string{},
	}
	if configure != nil {
		configure(r)
	}
	if err := r.Prepare(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return r, broker
}
