package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

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
	{"amount", 1700, 12<<16 + 2 + 4, func(i int) string { return fmt.Sprintf("%d.%02d", i%99991, i%100) }},
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
	p := &path{session: decode.NewSession(), enc: envelope.New(envelope.Options{
		Prefix: "shop", Database: "shop", Version: "bench", Headers: true, Tombstones: true,
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

func BenchmarkDecodeEncode(b *testing.B) {
	p := newPath(b, ordinaryColumns)
	b.ReportAllocs()
	for b.Loop() {
		p.next(b)
		p.release()
	}
}

// BenchmarkPath is a row from its frame to the broker's acknowledgement, the broker in this process.
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
		if err := producer.Send(ctx, p.next(b), tx); err != nil {
			b.Fatal(err)
		}
	}
	if err := producer.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric((cpuSeconds()-began)*1e9/float64(b.N), "cpu-ns/op")
}
