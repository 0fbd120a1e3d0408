package connector_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// childConfig is the variable that makes this test's binary a connector, to be killed.
const childConfig = "TIDEMARK_TEST_CHILD"

// runChild runs the connector of a configuration until it is killed.
func runChild(file string) {
	f, _, err := config.Load(file, nil)
	if err == nil {
		err = connector.New(f.Connectors[0], f.Worker, connector.Deps{
			Log:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
			Metrics: metrics.New(prometheus.NewRegistry()).Connector("c1"), Version: "test",
		}).Run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is a connector in a process of its own.
type child struct {
	process *os.Process
	done    chan struct{} // closed when it has ended
}

func (r *rig) child() *child {
	r.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childConfig+"="+r.configuration())
	cmd.Stderr = r.log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	c := &child{process: cmd.Process, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		_ = cmd.Wait() // killed, mostly
	}()
	r.t.Cleanup(c.kill)
	return c
}

// kill ends it with SIGKILL, if it still runs.
func (c *child) kill() {
	_ = c.process.Kill() // it may have ended
	<-c.done
}

// killedSending runs the connector until it has sent something and a time more, and kills it.
func (r *rig) killedSending(d time.Duration) {
	r.t.Helper()
	admin := r.admin()
	before := r.end(admin, tableTopic)
	c := r.child()
	r.until("something is sent", func() bool {
		select {
		case <-c.done:
			r.t.Fatalf("the connector ended by itself\nlog:\n%s", r.log.String())
		default:
		}
		return r.end(admin, tableTopic) > before
	})
	time.Sleep(d)
	c.kill()
}

// end is how many records a topic ever got, those of open transactions too.
func (r *rig) end(admin *kadm.Client, topic string) (n int64) {
	r.t.Helper()
	ends, err := admin.ListEndOffsets(r.t.Context(), topic)
	if err != nil {
		r.t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) { n += max(o.Offset, 0) })
	return n
}

// kills is how often a connector is killed amid transactions.
func kills() int {
	if os.Getenv("TIDEMARK_TEST_ALL") == "" {
		return 6
	}
	return 20
}

// Transactions of 5 000 row messages, each of them many Kafka transactions; the connector is killed
// again and again, wherever it is. A read_committed consumer sees every event once.
func TestF08ExactlyOnceWhenTheConnectorIsKilled(t *testing.T) {
	t.Parallel()
	// A server of its own: how far the slot is behind its log must be this test's doing.
	killedInTransactions(t, newRigOn(t, ownServer(t, "18", nil)), kills())
}

func TestF08RealExactlyOnceWhenTheConnectorIsKilled(t *testing.T) {
	if os.Getenv("TIDEMARK_REALBROKER") == "" {
		t.Skip("TIDEMARK_REALBROKER is not set: the real-broker stage runs this")
	}
	testenv.RequireJava(t)
	r := newRig(t, "18")
	kafka, err := testenv.StartKafka(t.Context(), testenv.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kafka.Close(); err != nil {
			t.Error(err)
		}
	})
	r.kafka = kafka
	killedInTransactions(t, r, kills())
}

// messagesEach is the number of row messages of a transaction of mixed.
const messagesEach = 5000

// mixed is a transaction of 3 000 inserts, 1 000 updates, 500 changes of key and 500 deletes.
func mixed(round int) string {
	from := round*10_000 + 1
	return fmt.Sprintf("BEGIN; %s;"+
		"UPDATE t SET v = 'changed' WHERE id BETWEEN %[2]d AND %[2]d + 999;"+
		"UPDATE t SET id = id + 5000 WHERE id BETWEEN %[2]d + 1000 AND %[2]d + 1499;"+
		"DELETE FROM t WHERE id BETWEEN %[2]d + 2000 AND %[2]d + 2499; COMMIT;",
		insertNumbers(from, from+2999), from)
}

func killedInTransactions(t *testing.T, r *rig, kills int) {
	t.Helper()
	r.exactlyOnce(16 << 10)
	r.extra["slot.takeover.timeout.ms"] = "60000"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.clean(run)
	random := rand.New(rand.NewPCG(7, 7))
	transactions, cuts := 0, 0
	for range kills {
		if rec := r.record(); rec.LSNCommit != 0 {
			cuts++
		}
		// The next one waits in the log behind what the killed process has not done.
		if behind := r.query("SELECT (pg_current_wal_lsn() - confirmed_flush_lsn)::text FROM "+
			"pg_replication_slots WHERE slot_name = $1", r.slot()); len(behind) < 7 {
			r.exec(mixed(transactions))
			transactions++
		}
		r.killedSending(time.Duration(random.IntN(500)) * time.Millisecond)
	}
	run = r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	t.Logf("%d transactions, %d of %d kills in the midst of one", transactions, cuts, kills)
	if cuts < kills/4 {
		t.Errorf("only %d of %d kills left a transaction cut", cuts, kills)
	}
	r.checkMixed(transactions)
}

// checkMixed holds what a read_committed consumer sees against what was done.
func (r *rig) checkMixed(transactions int) {
	t := r.t
	t.Helper()
	ops := map[string]int{}
	indexes := map[string][]int{} // by commit LSN
	rows := map[string]string{}
	for _, e := range r.once("shop.public.t") {
		ops[e.op()]++
		index, err := strconv.Atoi(e.headers["tidemark.event_index"])
		if err != nil {
			t.Fatal(err)
		}
		commit := e.headers["tidemark.commit_lsn"]
		indexes[commit] = append(indexes[commit], index)
		key := fmt.Sprint(e.key)
		if delete(rows, key); e.value != nil && e.op() != "d" {
			rows[key] = fmt.Sprint(inner(row(e.value["after"])["v"]))
		}
	}
	for op, each := range map[string]int{"c": 3500, "u": 1000, "d": 1000, "tombstone": 1000} {
		if ops[op] != each*transactions {
			t.Errorf("%s: %d events, want %d", op, ops[op], each*transactions)
		}
	}
	if len(indexes) != transactions {
		t.Errorf("%d transactions came, want %d", len(indexes), transactions)
	}
	for commit, of := range indexes {
		slices.Sort(of)
		if of = slices.Compact(of); len(of) != messagesEach || of[len(of)-1] != messagesEach-1 {
			t.Errorf("transaction %s: %d row messages, the last is %d", commit, len(of), of[len(of)-1])
		}
	}
	want := r.query("SELECT string_agg(id || '=' || v, ' ' ORDER BY id) FROM t")
	var got []string
	for key, v := range rows {
		got = append(got, strings.TrimSuffix(strings.TrimPrefix(key, "map[id:"), "]")+"="+v)
	}
	slices.SortFunc(got, func(a, b string) int {
		x, _ := strconv.Atoi(a[:strings.IndexByte(a, '=')])
		y, _ := strconv.Atoi(b[:strings.IndexByte(b, '=')])
		return x - y
	})
	if strings.Join(got, " ") != want {
		t.Errorf("%d keys are alive in the topic, and they are not the table's %s rows", len(got),
			r.query("SELECT count(*)::text FROM t"))
	}
}
