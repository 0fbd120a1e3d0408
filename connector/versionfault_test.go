package connector_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// valueIDs returns the schema ids of the table's events.
func (r *rig) valueIDs() (out []int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs()...), kgo.ConsumeTopics(tableTopic),
		kgo.KeepControlRecords())
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	for left := r.stored(); left > 0; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			r.t.Fatalf("%d records are missing", left)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			left--
			if !rec.Attrs.IsControl() {
				out = append(out, int(binary.BigEndian.Uint32(rec.Value[1:])))
			}
		})
	}
	return out
}

// Brokers of before KIP-890, whose transactions have the older protocol: both modes work, and the
// connector killed in between is no reason for a row twice.
func TestF39BrokersBeforeKIP890(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.useBroker(testenv.FakeBrokerOptions{
			Options: []kfake.Opt{kfake.MaxVersions(kversion.V3_6_0())},
		})
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		r.exec(insertNumbers(1, 10))
		r.caughtUp(run)
		r.clean(run)
		for i := range 3 {
			at := r.record().LSN
			child := r.child()
			r.exec(insertNumbers(i*1000+11, (i+1)*1000+10))
			r.until("some of it is stored", func() bool {
				rec := r.record()
				return rec.LSN > at || rec.LSNCommit != 0
			})
			child.kill()
		}
		run = r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		r.inOrder(3010)
	})
}

// withoutTransactions puts a broker that has none in the place of the usual one.
func (r *rig) withoutTransactions() {
	r.t.Helper()
	without := kversion.V3_6_0()
	for _, key := range []kmsg.Key{
		kmsg.InitProducerID, kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn, kmsg.EndTxn,
		kmsg.TxnOffsetCommit, kmsg.DescribeTransactions, kmsg.ListTransactions,
	} {
		without.SetMaxKeyVersion(int16(key), -1)
	}
	r.useBroker(testenv.FakeBrokerOptions{Options: []kfake.Opt{kfake.MaxVersions(without)}})
}

// Brokers without transactions: at least once works, the position written as a plain record; exactly
// once is refused by name.
func TestF39BrokersWithoutTransactions(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.withoutTransactions()
		r.exec(numbers, insertNumbers(1, 10))
		if r.exactly() {
			contains(t, r.refused(fault.ConfigInvalid), "exactly.once.support", "transactions")
			return
		}
		for i := range 2 {
			run := r.start()
			r.streaming(run)
			r.exec(insertNumbers(i*10+11, i*10+20))
			r.caughtUp(run)
			r.clean(run)
		}
		if rec := r.record(); rec == nil || rec.LSN == 0 {
			t.Error("no position is stored")
		}
		r.inOrder(30)
		if n := len(r.all(tableTopic)); n != 30 {
			t.Errorf("%d events of 30 rows: the position was not taken up", n)
		}
	})
}

// A frozen process that wakes up is not refused there: what it writes is written over.
func TestF12F39AForeignPositionIsWrittenOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.withoutTransactions()
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 10))
	r.caughtUp(run)
	ours := r.record().LSN
	r.change(func(rec *offsets.Record) { rec.LSN = ours - 1 })
	r.until("the position is ours again", func() bool { return r.record().LSN >= ours })
	r.clean(run)
}
