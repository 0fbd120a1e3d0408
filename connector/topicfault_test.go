package connector_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// admin returns a client of the broker for a test's own acts.
func (r *rig) admin() *kadm.Client {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs()...))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// A topic that was deleted while the connector was down is made again as configured, and that its
// history is gone is said.
func TestF26ATopicIsMissingAtTheStart(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.extra["topic.creation.default.partitions"] = "5"
		r.extra["topic.creation.default.retention.ms"] = "1234567"
		r.exec(numbers, insertNumbers(1, 3))
		run := r.start()
		r.streaming(run)
		r.exec("UPDATE t SET v = v")
		r.caughtUp(run)
		if reasons := run.c.Status().Reasons; len(reasons) > 0 {
			t.Errorf("a first start finds %v", reasons)
		}
		r.clean(run)
		if err := r.broker.Cluster().DeleteTopic(tableTopic); err != nil {
			t.Fatal(err)
		}
		run = r.start()
		r.streaming(run)
		r.exec(insertNumbers(4, 5))
		r.caughtUp(run)
		contains(t, strings.Join(run.c.Status().Reasons, " "), tableTopic, "was missing")
		if !run.c.Status().Ready {
			t.Error("the connector is not ready")
		}
		r.clean(run)
		info := r.broker.Cluster().TopicInfo(tableTopic)
		if n := len(r.broker.Cluster().PartitionInfos(tableTopic)); n != 5 ||
			*info.Configs["retention.ms"] != "1234567" {
			t.Errorf("%d partitions, %v", n, info.Configs)
		}
		sameInts(t, "ids", ids(r.committed(tableTopic), "id"), []int{4, 5})
	})
}

// A topic that is deleted while the connector runs is missed: the connector stops, and does not make
// it again by itself. One that somebody else makes again at once is another topic, and no less
// missed.
func TestF27ATopicIsDeletedWhileRunning(t *testing.T) {
	t.Parallel()
	hows := []string{"made again"}
	if os.Getenv("TIDEMARK_TEST_ALL") != "" {
		hows = append(hows, "gone") // the client asks for the topic for up to 80 s
	}
	for _, again := range hows {
		t.Run(again, func(t *testing.T) {
			inBothModes(t, func(t *testing.T, r *rig) {
				r.onePartition()
				r.exec(numbers)
				run := r.start()
				r.streaming(run)
				r.exec(insertNumbers(1, 3))
				r.caughtUp(run)
				at := r.record().LSN
				cluster := r.broker.Cluster()
				err := cluster.DeleteTopic(tableTopic)
				if again == "made again" {
					err = errors.Join(err, cluster.CreateTopic(tableTopic, 1, nil))
				}
				if err != nil {
					t.Fatal(err)
				}
				r.exec(insertNumbers(4, 6))
				contains(t, code(t, run.ended(t), fault.TopicMissing), tableTopic)
				if now := r.record().LSN; now > at+1<<16 {
					t.Errorf("the position went from %s to %s", at, now)
				}
				if again == "gone" && cluster.TopicInfo(tableTopic) != nil {
					t.Error("the connector made the topic again")
				}
				run = r.start()
				r.streaming(run)
				r.caughtUp(run)
				r.clean(run)
				got := ids(r.committed(tableTopic), "id")
				sameInts(t, "ids", got, []int{4, 5, 6})
			})
		})
	}
}

// More partitions while rows flow: keys go elsewhere from then on, which is said in the log, in
// /readyz and by a metric.
func TestF28PartitionsAreAddedWhileRunning(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.onePartition()
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		r.exec(insertNumbers(1, 50))
		r.caughtUp(run)
		if _, err := r.admin().UpdatePartitions(t.Context(), 4, tableTopic); err != nil {
			t.Fatal(err)
		}
		// The client looks at a topic again after minutes, or when a leader has moved.
		moved := r.fault(kerr.NotLeaderForPartition, tableTopic, kmsg.Produce)
		r.exec(insertNumbers(51, 51))
		if err := moved.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		moved.Remove()
		r.caughtUp(run)
		r.exec(insertNumbers(52, 100))
		r.caughtUp(run)
		status := run.c.Status()
		contains(t, strings.Join(status.Reasons, " "), tableTopic, "from 1 to 4 partitions")
		if n := metric(t, run, "tidemark_partition_changes_total"); n != 1 || !status.Ready {
			t.Errorf("changes counted: %v, ready: %v", n, status.Ready)
		}
		contains(t, r.log.String(), "number of partitions changed")
		r.clean(run)
		got := r.committed(tableTopic)
		if len(got) != 100 {
			t.Errorf("%d events of 100 rows", len(got))
		}
		on := map[int32]bool{}
		for _, e := range got {
			if n := ids([]event{e}, "id")[0]; n <= 50 && e.partition != 0 {
				t.Errorf("id %d is on partition %d", n, e.partition)
			}
			on[e.partition] = true
		}
		if len(on) != 4 {
			t.Errorf("events are on %d of 4 partitions", len(on))
		}
	})
}

// A right is taken away while the connector runs: it stops and says which, and on what. With the
// right given back, the next start goes on.
func TestF29ARightIsTakenAwayWhileRunning(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exec(numbers)
		done := 0
		for _, taken := range []struct {
			err   *kerr.Error
			topic string
			keys  []kmsg.Key
			says  []string
		}{
			{
				kerr.TopicAuthorizationFailed, tableTopic,
				[]kmsg.Key{kmsg.Produce},
				[]string{"Write", "topic " + tableTopic},
			},
			{
				kerr.TopicAuthorizationFailed, "tidemark-offsets",
				[]kmsg.Key{kmsg.Produce},
				[]string{"Write", "topic tidemark-offsets"},
			},
			{
				kerr.TransactionalIDAuthorizationFailed, "",
				[]kmsg.Key{kmsg.EndTxn, kmsg.AddPartitionsToTxn, kmsg.InitProducerID},
				[]string{"Write", "transactional id tidemark-offsets-c1"},
			},
		} {
			run := r.start()
			r.streaming(run)
			r.exec(insertNumbers(done+1, done+5))
			r.caughtUp(run)
			revoked := r.fault(taken.err, taken.topic, taken.keys...)
			r.exec(insertNumbers(done+6, done+10))
			done += 10
			contains(t, code(t, run.ended(t), fault.BrokerForbids), taken.says...)
			r.refused(fault.BrokerForbids)
			revoked.Remove()
		}
		run := r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		r.inOrder(done)
	})
}

// The position was kept in a topic that was deleted, or emptied, and the slot is there: what is
// between the two is not known, so nothing is read and nothing is moved before a person decides.
func TestF32TheOffsetsTopicIsGone(t *testing.T) {
	t.Parallel()
	lose := map[string]func(*rig) error{
		"deleted": func(r *rig) error { return r.broker.Cluster().DeleteTopic("tidemark-offsets") },
		"emptied": func(r *rig) error {
			return r.broker.Cluster().DeleteRecords("tidemark-offsets", 0, -1)
		},
	}
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exec(numbers)
		done := 0
		hows := []string{"deleted", "emptied"}
		if os.Getenv("TIDEMARK_TEST_ALL") != "" {
			hows = append(hows, "deleted while running") // the client asks for the topic for 30 s
		}
		for _, how := range hows {
			run := r.start()
			r.streaming(run)
			r.exec(insertNumbers(done+1, done+5))
			r.caughtUp(run)
			running := strings.HasSuffix(how, "while running")
			if !running {
				r.clean(run)
			}
			if err := lose[strings.Fields(how)[0]](r); err != nil {
				t.Fatal(err)
			}
			r.exec(insertNumbers(done+6, done+10))
			done += 10
			if running {
				if err := run.ended(t); fault.CodeOf(err) != fault.TopicMissing &&
					fault.CodeOf(err) != fault.SlotWithoutOffset {
					t.Errorf("%s: %v", how, err)
				}
			}
			at := r.confirmedFlush()
			contains(t, r.refused(fault.SlotWithoutOffset), r.slot(), "slot.adopt")
			if now := r.confirmedFlush(); now != at {
				t.Errorf("%s: the slot went from %s to %s", how, at, now)
			}
			if rec := r.record(); rec != nil && rec.LSN != 0 {
				t.Errorf("%s: a position was stored: %s", how, rec.LSN)
			}
			r.extra["slot.adopt"] = "true" // the person's decision
			run = r.start()
			r.streaming(run)
			r.caughtUp(run)
			r.clean(run)
			delete(r.extra, "slot.adopt")
		}
		r.inOrder(done)
	})
}

// A record of the connector's own that cannot be read, or is of a later version, is no reason to
// guess; records of others are none of its business.
func TestF33TheOffsetsTopicHoldsWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		r.exec(insertNumbers(1, 5))
		r.caughtUp(run)
		r.clean(run)
		good, err := r.record().Marshal()
		if err != nil {
			t.Fatal(err)
		}
		own, err := offsets.RecordKey("c1", "shop")
		if err != nil {
			t.Fatal(err)
		}
		put := func(key, value string) {
			t.Helper()
			r.put("tidemark-offsets", key, value)
		}
		put(`["other",{"server":"shop"}]`, `{"format":99}`)
		put("garbage", "\x00\xff")
		r.exec(insertNumbers(6, 10))
		for _, value := range []string{"\x00garbage", `{"format":99,"lsn":1,"history":0}`} {
			put(string(own), value)
			at := r.confirmedFlush()
			contains(t, r.refused(fault.OffsetsUnreadable), "tidemark offsets")
			if now := r.confirmedFlush(); now != at {
				t.Errorf("the slot went from %s to %s", at, now)
			}
		}
		put(string(own), string(good))
		run = r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		r.inOrder(10)
	})
}

// put writes a record as another program would.
func (r *rig) put(topic, key, value string) {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs()...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	rec := &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)}
	if err := client.ProduceSync(r.t.Context(), rec).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}
