package cases_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// The other halves of K17 are connector's TestF40ARegistryThatIsDownIsWaitedFor (b: down while rows
// flow, the walsender stays) and schema/registry's tests of one request.
func TestF41K17RegistryThatAnswersHalf(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.worker["schema.registry.timeout.ms"] = "500"
		r.exec(`CREATE TABLE c(id int PRIMARY KEY)`, `INSERT INTO c VALUES (1)`)
		for _, f := range []testenv.RegistryFault{
			{Method: "POST", Path: "c-key", Status: 500, ErrorCode: 50002, AfterStoring: true},
			{Method: "POST", Path: "c-value", Hang: true},
			{Method: "POST", Path: "c-value", Status: 429, RetryAfter: "1"},
		} {
			r.registry.Inject(f)
		}
		began := time.Now()
		run := r.streaming()
		if waited := time.Since(began); waited < 1500*time.Millisecond {
			t.Errorf("streaming after %s: neither timeout nor Retry-After was kept", waited)
		}
		r.exec(`INSERT INTO c VALUES (2)`)
		same(t, "event", lines(r.drain(run, "c")),
			`r NOT_APPLICABLE {id:1} {id:1}`, `c NOT_APPLICABLE {id:2} {id:2}`)
		for _, subject := range []string{"-key", "-value"} {
			if n := len(r.schemas(r.topic("c") + subject)); n != 1 {
				t.Errorf("%d versions of %s, want 1", n, subject)
			}
		}
		posts := 0
		for _, req := range r.registry.Requests() {
			if strings.HasPrefix(req, "POST ") {
				posts++
			}
		}
		if posts != 5 {
			t.Errorf("%d registrations were tried, want 5: %v", posts, r.registry.Requests())
		}
		r.clean(run)
	})
}

func TestK17RegistryThatRefusesTheCredentials(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.worker["basic.auth.user.info"] = "user:sesame-open"
		r.exec(`CREATE TABLE c(id int PRIMARY KEY)`, `INSERT INTO c VALUES (1)`)
		r.registry.Inject(testenv.RegistryFault{Count: -1, Status: 401, Message: "no user:sesame-open"})
		text := r.ends(r.start(), fault.AuthenticationFailed, "401", "basic.auth.user.info")
		if strings.Contains(text+r.log.String(), "sesame") {
			t.Error("the password is in the error or the log")
		}
		r.registry.ClearFaults()
		run := r.streaming()
		if got := ops(r.drain(run, "c")); got != "r" {
			t.Errorf("sent %q, want r", got)
		}
		r.clean(run)
	})
}

// limit sets max.message.bytes of a topic.
func (r *rig) limit(topic string, bytes int) {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.broker.Addrs()...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	value := fmt.Sprint(bytes)
	if _, err := kadm.NewClient(client).AlterTopicConfigs(r.t.Context(), []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &value},
	}, topic); err != nil {
		r.t.Fatal(err)
	}
}

const huge = `(SELECT string_agg(md5(g::text), '') FROM generate_series(1,%d) g)`

func TestF25K18RowLargerThanTheTopicTakes(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["topic.creation.default.max.message.bytes"] = "1000000"
		r.keys["producer.override.max.request.size"] = "8000000"
		r.exec(`CREATE TABLE c35(id int PRIMARY KEY, p text)`, `INSERT INTO c35 VALUES (0,'ok')`)
		run := r.streaming()
		r.exec(fmt.Sprintf(`INSERT INTO c35 SELECT 1,`+huge, 28000)) // 896 000 bytes: fits
		before := r.lsn(`SELECT pg_current_wal_insert_lsn()::text`)
		r.exec(fmt.Sprintf(`INSERT INTO c35 SELECT 2,`+huge, 60000), `INSERT INTO c35 VALUES (3,'after')`)
		text := r.ends(run, fault.RecordTooLarge, "shop.public.c35", "max.message.bytes",
			"1000000", "192")
		same(t, "event", lines(r.read(r.topic("c35"))), `r NOT_APPLICABLE {id:0} {id:0 p:"ok"}`,
			`c NOT_APPLICABLE {id:1} {id:1 p:<896000>}`)
		slot := `SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1`
		if at := r.lsn(slot, r.slot()); at > before {
			t.Errorf("the slot is at %s, past %s, where the row begins that was not sent", at, before)
		}
		r.ends(r.start(), fault.RecordTooLarge) // and not skipped by a start
		r.limit(r.topic("c35"), 3000000)
		run = r.streaming()
		r.exec(`ALTER TABLE c35 REPLICA IDENTITY FULL`, `UPDATE c35 SET p = p || 'x' WHERE id = 1`)
		got := lines(r.drain(run, "c35"))
		same(t, "after "+text, got[len(got)-3:],
			`c NOT_APPLICABLE {id:2} {id:2 p:<1920000>}`, `c NOT_APPLICABLE {id:3} {id:3 p:"after"}`,
			`u FULL {id:1} {id:1 p:<896001>} before{id:1 p:<896000>} old{id:1}`)
		r.clean(run)
	})
}

// The same for a row that a snapshot reads: the table is not done, and is read again.
func TestF25K18RowLargerThanTheTopicTakesInASnapshot(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["topic.creation.default.max.message.bytes"] = "1000000"
		r.keys["producer.override.max.request.size"] = "8000000"
		r.exec(`CREATE TABLE c35(id int PRIMARY KEY, p text)`, `INSERT INTO c35 VALUES (0,'ok')`,
			fmt.Sprintf(`INSERT INTO c35 SELECT 2,`+huge, 60000), `INSERT INTO c35 VALUES (3,'after')`)
		r.ends(r.start(), fault.RecordTooLarge, "shop.public.c35")
		r.limit(r.topic("c35"), 3000000)
		run := r.streaming()
		rows := fold(t, r.drain(run, "c35"))
		if len(rows) != 3 || rows["{id:2}"] != "{id:2 p:<1920000>}" {
			t.Errorf("rows: %v", rows)
		}
		r.clean(run)
	})
}
