package testenv_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
)

const (
	schemaOne   = `{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`
	schemaTwo   = `{"type":"record","name":"R","fields":[{"name":"a","type":"int"},` + fieldB + `]}`
	fieldB      = `{"name":"b","type":["null","int"],"default":null}`
	schemaWrong = `{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}`
)

func startFakeRegistry(t *testing.T, o testenv.FakeRegistryOptions) *testenv.FakeRegistry {
	t.Helper()
	r, err := testenv.StartFakeRegistry(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// registryClient has connections of its own, closed with the test.
func registryClient(t *testing.T, url string, options ...sr.ClientOpt) *sr.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	all := []sr.ClientOpt{
		sr.URLs(url), sr.HTTPClient(&http.Client{Transport: transport}),
	}
	c, err := sr.NewClient(append(all, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func register(t *testing.T, c *sr.Client, schema string) (sr.SubjectSchema, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return c.CreateSchema(ctx, "events-value", sr.Schema{Schema: schema})
}

func wantStatus(t *testing.T, err error, status int) {
	t.Helper()
	var answer *sr.ResponseError
	if !errors.As(err, &answer) || answer.StatusCode != status {
		t.Errorf("error is %v, wanted status %d", err, status)
	}
}

// checkCompatibility registers two versions that may follow each other and one that may not.
func checkCompatibility(t *testing.T, c *sr.Client) {
	t.Helper()
	first, err := register(t, c, schemaOne)
	if err != nil {
		t.Fatal(err)
	}
	second, err := register(t, c, schemaTwo)
	if err != nil {
		t.Fatal(err)
	}
	if first.ID == second.ID {
		t.Errorf("both schemas have the id %d", first.ID)
	}
	again, err := register(t, c, schemaOne)
	if err != nil || again.ID != first.ID {
		t.Errorf("registered again: id %d, %v; wanted id %d", again.ID, err, first.ID)
	}
	_, err = register(t, c, schemaWrong)
	wantStatus(t, err, http.StatusConflict)
}

func TestTheFakeRegistryChecksCompatibility(t *testing.T) {
	r := startFakeRegistry(t, testenv.FakeRegistryOptions{
		Path: "/apis/ccompat/v7", Compatible: avrocompat.Check,
	})
	c := registryClient(t, r.URL)
	checkCompatibility(t, c)
	answer, err := c.CheckCompatibility(t.Context(), "events-value", -1, sr.Schema{Schema: schemaWrong})
	if err != nil || answer.Is {
		t.Errorf("compatibility check of an incompatible schema: %+v, %v", answer, err)
	}
	level := c.SetCompatibility(t.Context(), sr.SetCompatibility{Level: sr.CompatNone}, "events-value")
	if err := level[0].Err; err != nil {
		t.Fatal(err)
	}
	if _, err := register(t, c, schemaWrong); err != nil {
		t.Errorf("level NONE: %v", err)
	}
}

func TestAnInjectedAnswerIsGivenOnceAndMayFollowTheStoring(t *testing.T) {
	r := startFakeRegistry(t, testenv.FakeRegistryOptions{Compatible: avrocompat.Check})
	c := registryClient(t, r.URL)
	r.Inject(testenv.RegistryFault{Method: "POST", Status: 500, AfterStoring: true})
	r.Inject(testenv.RegistryFault{Method: "POST", Status: 429, RetryAfter: "1"})
	_, err := register(t, c, schemaOne)
	wantStatus(t, err, http.StatusInternalServerError)
	if !r.Registry().SubjectExists("events-value") {
		t.Error("the schema was not stored before the answer was lost")
	}
	_, err = register(t, c, schemaOne)
	wantStatus(t, err, http.StatusTooManyRequests)
	if _, err := register(t, c, schemaOne); err != nil {
		t.Errorf("faults are used up, yet: %v", err)
	}
}

func TestARegistryThatHangsAnswersNobody(t *testing.T) {
	r := startFakeRegistry(t, testenv.FakeRegistryOptions{Compatible: avrocompat.Check})
	r.Inject(testenv.RegistryFault{Hang: true, Count: -1})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := registryClient(t, r.URL).Subjects(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, wanted the deadline", err)
	}
}

func TestTheFakeRegistryDemandsTLSAndAPassword(t *testing.T) {
	r := startFakeRegistry(t, testenv.FakeRegistryOptions{User: "u", Password: "p", TLS: true})
	config, err := (&testenv.Certificates{CAFile: r.CAFile}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	good := registryClient(t, r.URL, sr.DialTLSConfig(config), sr.BasicAuth("u", "p"))
	if _, err := good.Subjects(t.Context()); err != nil {
		t.Error(err)
	}
	bad := registryClient(t, r.URL, sr.DialTLSConfig(config), sr.BasicAuth("u", "wrong"))
	_, err = bad.Subjects(t.Context())
	wantStatus(t, err, http.StatusUnauthorized)
	if _, err := registryClient(t, r.URL).Subjects(t.Context()); err == nil {
		t.Error("the certificate was accepted without its authority")
	}
}
