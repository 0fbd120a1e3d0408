package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/connector/deliver"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// column is a column of a relation, and its text in row i.
type column struct {
	name string
	oid  uint32
	mod  int32
	text func(i int) string // "": null
}

// ordinaryColumns are those of the shape "stream".
var ordinaryColumns = []column{
	{"id", 20, -1, func(i int) string { return fmt.Sprint(i) }},
	{"customer", 23, -1, func(i int) string { return fmt.Sprint(i % 100_003) }},
	{"status", 25, -1, func(i int) string { return fmt.Sprint("status-", i%7) }},
	{"amount", 1700, 12<<16 + 2 + 4, func(i int) string {
		return fmt.Sprintf("%d.%02d", i%99991, i%100)
	}},
	{"quantity", 23, -1, func(i int) string { return fmt.Sprint(i % 50) }},
	{"created", 1184, -1, func(i int) string {
		return fmt.Sprintf("2026-01-01 00:%02d:%02d.%06d+00", i/60%60, i%60, i%1_000_000)
	}},
	{"paid", 16, -1, func(i int) string { return []string{"t", "f"}[i%2] }},
	{"note", 25, -1, func(i int) string { return fmt.Sprintf("note of %032x and %d", i*7919, i) }},
}

func frame(kind byte, parts ...any) []byte {
	b := []byte{kind}
	for _, p := range parts {
		switch v := p.(type) {
		case byte:
			b = append(b, v)
		case uint16:
			b = binary.BigEndian.AppendUint16(b, v)
		case uint32:
			b = binary.BigEndian.AppendUint32(b, v)
		case uint64:
			b = binary.BigEndian.AppendUint64(b, v)
		case string:
			b = append(append(b, v...), 0)
		case []byte:
			b = append(b, v...)
		}
	}
	return b
}

func relationFrame(columns []column) []byte {
	b := frame('R', uint32(16400), "public", "stream", byte('d'), uint16(len(columns)))
	for i, c := range columns {
		key := byte(0)
		if i == 0 {
			key = 1
		}
		b = append(b, key)
		b = append(append(b, c.name...), 0)
		b = binary.BigEndian.AppendUint32(b, c.oid)
		b = binary.BigEndian.AppendUint32(b, uint32(c.mod))
	}
	return b
}

func insertFrame(columns []column, i int) []byte {
	b := frame('I', uint32(16400), byte('N'), uint16(len(columns)))
	for _, c := range columns {
		text := c.text(i)
		if text == "" {
			b = append(b, 'n')
			continue
		}
		b = append(b, 't')
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}
	return b
}

// path is everything between a frame and the producer, of one table.
type path struct {
	session *decode.Session
	enc     *envelope.Encoder
	table   *envelope.Table
	rows    [][]byte
	records []envelope.Record
	n       int
}

func newPath(tb testing.TB, columns []column) *path {
	tb.Helper()
	now := time.Now().UnixMicro()
	p := &path{session: decode.NewSession(), enc: envelope.New(envelope.Options{
		Prefix: "shop", Database: "shop", Version: "bench", Headers: true, Tombstones: true,
		Now: func() int64 { return now }, // the pump's clock stands still for some rows, too
	})}
	tb.Cleanup(p.enc.Close)
	p.decode(tb, frame('B', uint64(1000), uint64(1), uint32(7)))
	ev := p.decode(tb, relationFrame(columns))
	var err error
	if p.table, err = p.enc.Compile(ev.Relation, schema.TableInfo{}); err != nil {
		tb.Fatal(err)
	}
	p.table.SetIDs(1, 2)
	for i := range 1000 {
		p.rows = append(p.rows, insertFrame(columns, i))
	}
	return p
}

func (p *path) decode(tb testing.TB, f []byte) *decode.Event {
	ev, err := p.session.Decode(900, f)
	if err != nil {
		tb.Fatal(err)
	}
	return ev
}

// next decodes and encodes a row. Helper would cost as much as either.
func (p *path) next(tb testing.TB) []envelope.Record {
	ev := p.decode(tb, p.rows[p.n%len(p.rows)])
	p.n++
	var err error
	if p.records, err = p.enc.Row(p.records[:0], p.table, ev); err != nil {
		tb.Fatal(err)
	}
	return p.records
}

func (p *path) release() {
	for i := range p.records {
		p.records[i].Buffer.Release()
	}
}

// mixedColumns are those of the shape "mixed" whose type is not text all the same.
var mixedColumns = []column{
	ordinaryColumns[0],
	{"c1", 23, -1, func(i int) string { return fmt.Sprint(-i) }},
	{"c4", 20, -1, func(int) string { return "" }},
	{"c5", 21, -1, func(i int) string { return fmt.Sprint(i) }},
	{"c7", 16, -1, func(int) string { return "t" }},
	{"c8", 700, -1, func(i int) string { return fmt.Sprint(i, ".25") }},
	{"c9", 701, -1, func(i int) string { return fmt.Sprintf("%de+20", i) }},
	{"c12", 1700, 20<<16 + 6 + 4, func(i int) string { return fmt.Sprintf("-%d.000001", i) }},
	{"c13", 1082, -1, func(int) string { return "2026-02-28" }},
	{"c15", 1083, -1, func(int) string { return "23:59:59.5" }},
	{"c16", 1114, -1, func(int) string { return "2026-02-28 23:59:59.000001" }},
	{"c18", 1184, -1, func(int) string { return "2026-02-28 23:59:59+00" }},
	{"c20", 2950, -1, func(i int) string {
		return fmt.Sprintf("%08d-0000-4000-8000-000000000000", i)
	}},
	{"c23", 1043, 44, func(i int) string { return fmt.Sprint("varchar ", i) }},
	{"c24", 1042, 12, func(int) string { return "char    " }},
	{"c25", 17, -1, func(i int) string { return fmt.Sprintf("\\x%08x", i) }},
	{"c27", 3802, -1, func(i int) string { return fmt.Sprintf(`{"i": %d}`, i) }},
	{"c28", 1007, -1, func(i int) string { return fmt.Sprintf("{%d,NULL,%d}", i, i+1) }},
}

func BenchmarkDecodeEncode(b *testing.B) {
	p := newPath(b, ordinaryColumns)
	b.ReportAllocs()
	for b.Loop() {
		p.next(b)
		p.release()
	}
}

// BenchmarkPath is a row from its frame to the broker's acknowledgement; the broker is in this
// process. What it reports as cpu-ns/op stays the same on a loaded machine, or nearly so.
func BenchmarkPath(b *testing.B) {
	for _, codec := range []string{"lz4", "snappy", "zstd", "none"} {
		b.Run(codec, func(b *testing.B) { benchmarkPath(b, codec) })
	}
}

func benchmarkPath(b *testing.B, codec string) {
	broker, err := testenv.StartFakeBroker(testenv.FakeBrokerOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer broker.Close()
	p := newPath(b, ordinaryColumns)
	file, _, err := config.FromMaps(map[string]string{
		"bootstrap.servers": broker.Addrs()[0], "schema.registry.url": "http://localhost",
	}, map[string]map[string]string{"c": {
		"topic.prefix": "shop", "database.hostname": "h", "database.user": "u",
		"database.password": "p", "database.dbname": "d",
		"topic.creation.default.partitions": "6", "topic.creation.default.replication.factor": "1",
		"producer.override.compression.type": codec,
	}})
	if err != nil {
		b.Fatal(err)
	}
	c := file.Connectors[0]
	producer, err := deliver.New(context.Background(), deliver.Options{
		Kafka: file.Worker.Kafka, Producer: c.Producer, Creation: c.TopicCreation,
		Queue: deliver.NewQueue(c.MaxQueueBytes, nil),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer producer.Close()
	if err := producer.EnsureTopic(b.Context(), p.table.Topic, true); err != nil {
		b.Fatal(err)
	}
	tracker := offsets.NewTracker(1)
	tx := tracker.Begin(1000)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	began := cpuSeconds()
	for b.Loop() {
		if err := producer.Hold(ctx, p.next(b), tx); err != nil {
			b.Fatal(err)
		}
	}
	if err := producer.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric((cpuSeconds()-began)*1e9/float64(b.N), "cpu-ns/op")
}
