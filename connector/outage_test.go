package connector_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// A part of a transaction is confirmed when the server ends the session.
func TestF46TerminatedAmidATransaction(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.extra["producer.override.max.request.size"] = "10000"
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		sent, stores := 0, r.sends("tidemark-offsets")
		release := r.refuseAny(func(req *kmsg.ProduceRequest) bool {
			if stores(req) {
				return false
			}
			sent += records(req)
			return sent > 1000
		})
		r.exec(insertNumbers(1, 5000))
		r.until("a part is there", func() bool { return len(r.committed("shop.public.t")) > 0 })
		r.exec("SELECT pg_terminate_backend(" + r.walsender() + ")")
		r.until("its session at the server is gone", func() bool { return r.walsender() == "0" })
		release()
		r.until("the session is lost", func() bool { return r.logged("another one begins") })
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		for i, e := range r.complete(5000) {
			if want := fmt.Sprint(ids([]event{e}, "id")[0] - 1); e.headers["tidemark.event_index"] != want {
				t.Fatalf("event %d has the index %s, want %s", i, e.headers["tidemark.event_index"], want)
			}
		}
	})
}

// outages are what a network does to the way to the server. Silence is told from a slow server
// after a minute only, so those are not always run.
var outages = map[string]struct {
	breaks func(*testenv.Proxy)
	lost   bool // the session
	slow   bool
}{
	"reset":          {breaks: func(p *testenv.Proxy) { p.ResetAll() }, lost: true},
	"amid_a_message": {breaks: func(p *testenv.Proxy) { p.CutAfter(7777) }, lost: true},
	"single_bytes":   {breaks: func(p *testenv.Proxy) { p.SetSlice(1) }},
	"cut":            {breaks: func(p *testenv.Proxy) { p.Cut() }, lost: true, slow: true},
	"stall": {
		breaks: func(p *testenv.Proxy) { p.Stall(testenv.BothWays) }, lost: true, slow: true,
	},
	"half_open": { // what the server says is lost, the end of its connection too
		breaks: func(p *testenv.Proxy) { p.Stall(testenv.ToClient) }, lost: true, slow: true,
	},
}

func TestF47TheWayToTheServerBreaks(t *testing.T) {
	t.Parallel()
	for name, o := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if o.slow && os.Getenv("TIDEMARK_TEST_ALL") == "" {
				t.Skip("TIDEMARK_TEST_ALL is not set")
			}
			inBothModes(t, func(t *testing.T, r *rig) {
				r.exec(numbers, "ALTER DATABASE "+r.db+" SET wal_sender_timeout = '2s'")
				r.extra["database.query.timeout.ms"] = "20000" // a look at the catalog may be under way
				proxy := r.behindProxy()
				run := r.start()
				r.streaming(run)
				r.exec(insertNumbers(1, 500))
				o.breaks(proxy)
				r.exec(insertNumbers(501, 1000))
				if o.lost {
					r.until("the session is lost", func() bool { return r.logged("another one begins") })
				}
				if err := proxy.Heal(); err != nil {
					t.Fatal(err)
				}
				healed := time.Now()
				r.exec(insertNumbers(1001, 1500))
				r.streaming(run)
				r.caughtUp(run)
				if took := time.Since(healed); took > 90*time.Second {
					t.Errorf("%s from the repair to the last row", took)
				}
				r.clean(run)
				r.complete(1500)
				if r.logged("another one begins") != o.lost {
					t.Error("whether the session was lost is not as it should be")
				}
			})
		})
	}
}

// behindProxy puts a proxy between connector and server.
func (r *rig) behindProxy() *testenv.Proxy {
	r.t.Helper()
	proxy, err := testenv.NewProxy(fmt.Sprintf("%s:%d", r.pg.Host, r.pg.Port))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(proxy.Close)
	r.extra["database.hostname"], r.extra["database.port"] = "127.0.0.1", fmt.Sprint(proxy.Port())
	return proxy
}
