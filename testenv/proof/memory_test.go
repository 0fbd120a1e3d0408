//go:build linux

package proof_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/proof"
	"github.com/tidemark-cdc/tidemark/testenv/workload"
)

// A source transaction that is larger than the memory that there is, and in its midst a broker
// that takes nothing for longer than wal_sender_timeout: the process stays small, and the session
// stays the same.
func TestF14F58ATransactionLargerThanTheMemory(t *testing.T) {
	rows, limit, queue := 120_000, int64(96<<20), "16777216"
	modes := map[string]string{"at_least_once": "disabled"}
	if os.Getenv("TIDEMARK_TEST_ALL") != "" {
		rows, limit, queue = 2_500_000, 256<<20, "67108864"
		modes["exactly_once"] = "required"
	}
	for mode, support := range modes {
		t.Run(mode, func(t *testing.T) {
			r, broker := newRigAndBroker(t, workload.Options{Seed: 3}, map[string]string{
				"exactly.once.support": support, "max.queue.bytes": queue,
			})
			execute(t, r, "ALTER DATABASE "+r.Database+" SET wal_sender_timeout = '2s'")
			execute(t, r, "CREATE TABLE "+workload.Schema+".big (id int PRIMARY KEY, v text)")
			start(t, r)
			sender := walsender(t, r)
			var release atomic.Bool
			held := refuseAfter(broker, int64(rows/2), &release)
			execute(t, r, fmt.Sprintf("INSERT INTO %s.big SELECT g, repeat(md5(g::text), 32) "+
				"FROM generate_series(1, %d) g", workload.Schema, rows))
			within(t, r, 10*time.Minute, "the broker takes no more", held)
			for until := time.Now().Add(5 * time.Second); time.Now().Before(until); {
				if now := walsender(t, r); now != sender {
					t.Fatalf("the walsender was %s and is %s\n%s", sender, now, r.LogTail())
				}
				time.Sleep(100 * time.Millisecond)
			}
			release.Store(true)
			within(t, r, 10*time.Minute, "all rows are there", func() bool {
				return written(broker) >= int64(rows)
			})
			if now := walsender(t, r); now != sender {
				t.Errorf("the walsender was %s and is %s", sender, now)
			}
			most := mostMemory(t, r.Process().PID())
			t.Logf("%d MB of rows, at most %d MB of memory", rows>>10, most>>20)
			if most > limit {
				t.Errorf("the process had %d bytes, want at most %d", most, limit)
			}
		})
	}
}

func execute(t *testing.T, r *proof.Rig, sql string) {
	t.Helper()
	if err := r.Postgres.Exec(t.Context(), r.Database, sql); err != nil {
		t.Fatal(err)
	}
}

func walsender(t *testing.T, r *proof.Rig) (pid string) {
	t.Helper()
	conn, err := r.Postgres.Connect(t.Context(), r.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), "SELECT coalesce(active_pid, 0)::text FROM "+
		"pg_replication_slots WHERE slot_name = $1", r.Slot()).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

const bigTopic = "proof." + workload.Schema + ".big"

// written is the number of records in the topic of the large table.
func written(broker *testenv.FakeBroker) (n int64) {
	for p := range int32(16) {
		if info := broker.Cluster().PartitionInfo(bigTopic, p); info != nil {
			n += info.HighWatermark
		}
	}
	return n
}

// refuseAfter makes the broker refuse events behind the first n, with an error that the client
// tries again after, until release is true. It returns what says whether any were refused.
func refuseAfter(broker *testenv.FakeBroker, n int64, release *atomic.Bool) func() bool {
	cluster := broker.Cluster()
	offsets := cluster.TopicInfo("tidemark-offsets").TopicID
	var taken int64
	var refused atomic.Bool
	cluster.ControlKey(int16(kmsg.Produce), func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		req := k.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		if release.Load() {
			return nil, nil, false
		}
		for _, topic := range req.Topics {
			if topic.TopicID == offsets {
				return nil, nil, false
			}
			answer := kmsg.NewProduceResponseTopic()
			answer.Topic, answer.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				var b kmsg.RecordBatch
				if b.ReadFrom(p.Records) == nil {
					taken += int64(b.NumRecords)
				}
				part := kmsg.NewProduceResponseTopicPartition()
				part.Partition, part.ErrorCode, part.BaseOffset = p.Partition, kerr.NotEnoughReplicas.Code, -1
				answer.Partitions = append(answer.Partitions, part)
			}
			resp.Topics = append(resp.Topics, answer)
		}
		if taken <= n {
			return nil, nil, false
		}
		refused.Store(true)
		return resp, nil, true
	})
	return refused.Load
}

func within(t *testing.T, r *proof.Rig, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(50 * time.Millisecond) {
		if ended, err := r.Process().Ended(); ended || time.Now().After(deadline) {
			t.Fatalf("not so: %s (%v)\n%s", what, err, r.LogTail())
		}
	}
}

// mostMemory is the most resident memory that a process ever had.
func mostMemory(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == "VmHWM:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
