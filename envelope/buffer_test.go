package envelope

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Records stay what they were while their Buffer grows, is replaced, and others are released.
func TestRecordsOutliveGrowthAndRotation(t *testing.T) {
	o := options()
	o.Pool = NewBufferPool(1 << 10)
	e := New(o)
	rel := orders(byDefault)
	table := compile(t, e, rel, withPK)
	var held []Record
	var want []string
	for i := range 3000 {
		text := fmt.Sprint(i)
		if i%7 == 0 {
			text = strings.Repeat(text, 1000) // larger than a Buffer
		}
		old, next := row(fmt.Sprint(i), null), row(fmt.Sprint(i+1), text)
		recs := encode(t, e, table, change(update, rel, 'K', old, next))
		recs[0].Buffer.Release()
		recs[1].Buffer.Release()
		held = append(held, recs[2])
		want = append(want, fmt.Sprintf("%x %x %s", recs[2].Key, recs[2].Value, headerText(recs[2])))
		if !strings.Contains(string(recs[2].Value), text) {
			t.Fatalf("row %d is not in its value", i)
		}
	}
	e.Close()
	for i, r := range held {
		if got := fmt.Sprintf("%x %x %s", r.Key, r.Value, headerText(r)); got != want[i] {
			t.Fatalf("record %d changed", i)
		}
		r.Buffer.Release()
	}
}

// Nobody can write behind a record's bytes, which are followed by the next record's.
func TestSlicesEndWithTheirRecord(t *testing.T) {
	e := New(options())
	rel := orders(byDefault)
	table := compile(t, e, rel, withPK)
	recs := encode(t, e, table, change(remove, rel, 'K', row("1", null), nil))
	for _, r := range recs {
		if cap(r.Key) != len(r.Key) || cap(r.Value) != len(r.Value) || cap(r.Headers) != len(r.Headers) {
			t.Errorf("a slice reaches behind its record: %+v", r)
		}
	}
}

// The producer's goroutine reads and releases while the encoder goes on in the same Buffer.
func TestReleaseFromAnotherGoroutine(t *testing.T) {
	o := options()
	o.Pool = NewBufferPool(4 << 10)
	e := New(o)
	rel := orders(byDefault)
	table := compile(t, e, rel, withPK)
	records := make(chan Record, 64)
	done := make(chan error)
	go func() {
		var err error
		for r := range records {
			if !bytes.HasPrefix(r.Key, []byte{0, 0, 0, 0, keyID}) || len(r.Headers) < 5 {
				err = fmt.Errorf("record %+v", r)
			}
			r.Buffer.Release()
		}
		done <- err
	}()
	var recs []Record
	for i := range 5000 {
		var err error
		recs, err = e.Row(recs[:0], table,
			change(insert, rel, 0, nil, row(fmt.Sprint(i), "some text")))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			records <- r
		}
	}
	close(records)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A change that stops in its last record leaves nothing behind: dst as it came, and the next
// change is whole.
func TestFaultRollsBack(t *testing.T) {
	o := options()
	o.FailUnrepresentable = true
	e := New(o)
	rel := orders(byDefault)
	table := compile(t, e, rel, withPK)
	recs := encode(t, e, table, change(insert, rel, 0, nil, row("1", "a")))
	used := len(recs[0].Buffer.Bytes)
	got, err := e.Row(recs, table, change(update, rel, 'K', row("1", null), row("2", "\xff")))
	wantFault(t, err, fault.ValueUnrepresented)
	if len(got) != 1 || len(recs[0].Buffer.Bytes) != used {
		t.Fatalf("%d records, %d bytes instead of %d", len(got), len(recs[0].Buffer.Bytes), used)
	}
	got, err = e.Row(got, table, change(insert, rel, 0, nil, row("2", "c")))
	if err != nil {
		t.Fatal(err)
	}
	lines(t, table, got, "c key=(1) NOT_APPLICABLE before=- key=- after=(1,a)",
		"c key=(2) NOT_APPLICABLE before=- key=- after=(2,c)")
}

// A row costs no allocation: Buffers, header slabs and scratch space are used again.
func TestRowsDoNotAllocate(t *testing.T) {
	e := New(options())
	rel := relation(byDefault, col("id", oidInt4, true), col("v", oidText, false),
		col("at", oidTimestamp, false), col("n", oidFloat8, false))
	table := compile(t, e, rel, withPK)
	full := relation(byFull, rel.Columns...)
	fullTable := compile(t, e, full, withPK)
	values := row("1", "some text", "2024-01-02 03:04:05", "1.5")
	key := schema.Tuple{values[0], {Kind: 'n'}, {Kind: 'n'}, {Kind: 'n'}}
	other := row("2", "some text", "infinity", unchanged)
	events := []*decode.Event{
		change(insert, rel, 0, nil, values),
		change(update, rel, 'K', key, other),
		change(remove, rel, 'K', key, nil),
	}
	fullUpdate := change(update, full, 'O', values, values)
	recs := make([]Record, 0, 8)
	step := func() {
		recs = recs[:0]
		for _, ev := range events {
			recs, _ = e.Row(recs, table, ev)
		}
		recs, _ = e.Row(recs, fullTable, fullUpdate)
		recs, _ = e.Read(recs, table, values, Snapshot{})
		if len(recs) != 8 {
			t.Fatalf("%d records", len(recs))
		}
		for i := range recs {
			recs[i].Buffer.Release()
		}
	}
	for range 5000 {
		step() // Buffers and slabs find their size
	}
	if n := testing.AllocsPerRun(5000, step); n > 0 {
		t.Errorf("%.2f allocations for 8 records", n)
	}
}

func BenchmarkInsert(b *testing.B) {
	e := New(options())
	rel := relation(byDefault, col("id", oidInt8, true), col("a", oidInt4, false),
		col("b", oidText, false), col("c", oidText, false), col("d", oidTimestamp, false),
		col("e", oidFloat8, false), col("f", oidBool, false), col("g", oidNumeric, false))
	table := compile(b, e, rel, withPK)
	ev := change(insert, rel, 0, nil, row("123456", "42", "a customer's name",
		"a street, a town, a country and so on, for a while", "2024-01-02 03:04:05.678901",
		"1.25", "t", "1234.56"))
	var recs []Record
	b.ReportAllocs()
	for b.Loop() {
		recs, _ = e.Row(recs[:0], table, ev)
		b.SetBytes(int64(len(recs[0].Value)))
		recs[0].Buffer.Release()
	}
}
