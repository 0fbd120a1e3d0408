package cases_test

import (
	"os"
	"testing"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
)

// A real registry takes and refuses the same, but for NONE: Apicurio's takes it at a subject for no
// level of its own, and then its global level holds, here BACKWARD.
func TestDDLPageOnARealRegistry(t *testing.T) {
	if os.Getenv("TIDEMARK_REALBROKER") == "" {
		t.Skip("the real registry is a stage of its own: TIDEMARK_REALBROKER=1")
	}
	r := newRig(t, testenv.SharedPostgres(t, "18"))
	seen := r.runDDL()
	fake, err := testenv.StartFakeRegistry(testenv.FakeRegistryOptions{Compatible: avrocompat.Check})
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	registry, err := testenv.StartRegistry(t.Context(), testenv.RegistryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	for i, d := range ddls {
		want := refusals(t, fake.URL, i, &seen[i])
		want[len(levels)-1] = want[0]
		same(t, d.title, refusals(t, registry.URL, i, &seen[i]), want...)
	}
}
