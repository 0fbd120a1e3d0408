package consume

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files")

// texts is a Schemas of fixed texts.
type texts map[int]string

func (s texts) SchemaByID(_ context.Context, id int) (string, error) {
	if text, ok := s[id]; ok {
		return text, nil
	}
	return "", errors.New("the schema registry has no schema with this id")
}

// OIDs of pg_type.dat.
const (
	oidBool, oidBytea, oidInt8, oidInt4, oidText = 16, 17, 20, 23, 25
	oidFloat4, oidFloat8, oidDate, oidTime       = 700, 701, 1082, 1083
	oidTimestamp, oidTimestamptz, oidNumeric     = 1114, 1184, 1700
	oidTextArray, oidUUID                        = 1009, 2950
)

const (
	commitTime = 1_790_000_000_123_456 // 2026-09-21 14:13:20.123456 UTC
	recordTime = 1_790_000_001_000     // one second later, rounded
)

// shop encodes changes of one table and reads them back.
type shop struct {
	t       *testing.T
	encoder *envelope.Encoder
	table   *envelope.Table
	rel     *schema.Relation
	schemas texts
	offset  int64
}

func newShop(t *testing.T, rel *schema.Relation, info schema.TableInfo) *shop {
	t.Helper()
	s := &shop{t: t, rel: rel, encoder: envelope.New(envelope.Options{
		Prefix: "shop", Database: "shopdb", Version: "1.2.3", Headers: true, Tombstones: true,
		Now: func() int64 { return commitTime + 5000 },
	})}
	t.Cleanup(s.encoder.Close)
	var err error
	if s.table, err = s.encoder.Compile(rel, info); err != nil {
		t.Fatal(err)
	}
	s.table.SetIDs(1, 2)
	s.schemas = texts{1: s.table.KeySchema, 2: s.table.ValueSchema}
	return s
}

func column(name string, oid uint32, mod int32, key bool) schema.Column {
	return schema.Column{Name: name, TypeOID: oid, TypeMod: mod, Key: key}
}

func orders(identity schema.Identity) *schema.Relation {
	full := identity == schema.IdentityFull
	return &schema.Relation{
		OID: 16400, Namespace: "public", Name: "orders", Identity: identity,
		Columns: []schema.Column{
			column("id", oidInt8, -1, true), column("status", oidText, -1, full),
			column("total", oidNumeric, 10<<16|2+4, full), // numeric(10,2)
			column("note", oidText, -1, full), column("due", oidTimestamp, -1, full),
		},
	}
}

var primaryKey = schema.TableInfo{PrimaryKey: []string{"id"}}

const null, unchanged = "\x00n", "\x00u"

func tuple(values ...string) schema.Tuple {
	out := make(schema.Tuple, len(values))
	for i, v := range values {
		switch v {
		case null:
			out[i].Kind = schema.DatumNull
		case unchanged:
			out[i].Kind = schema.DatumUnchanged
		default:
			out[i] = schema.Datum{Kind: schema.DatumText, Text: []byte(v)}
		}
	}
	return out
}

var tx = decode.Tx{FinalLSN: 0x16B3748, CommitMicros: commitTime, XID: 742}

// change encodes one row change.
func (s *shop) change(kind decode.Kind, oldKind byte, old, next schema.Tuple) []envelope.Record {
	s.t.Helper()
	recs, err := s.encoder.Row(nil, s.table, &decode.Event{
		Kind: kind, Tx: &tx, Index: 3, LSN: 0x16B3700, Relation: s.rel,
		OldKind: oldKind, Old: old, New: next,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return recs
}

// messages makes of records what a Reader would give.
func (s *shop) messages(recs ...envelope.Record) []*Message {
	s.t.Helper()
	d := decoders{schemas: s.schemas, byID: map[int]*decoder{}}
	var out []*Message
	for _, r := range recs {
		rec := &kgo.Record{
			Topic: r.Topic, Key: r.Key, Value: r.Value, Partition: 4, Offset: s.offset,
			Timestamp: time.UnixMilli(recordTime),
		}
		for _, h := range r.Headers {
			rec.Headers = append(rec.Headers, kgo.RecordHeader(h))
		}
		s.offset++
		m, err := d.message(s.t.Context(), rec)
		if err != nil {
			s.t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// printed is what a person sees of messages, without colours.
func printed(t *testing.T, messages ...*Message) string {
	t.Helper()
	var b strings.Builder
	for _, m := range messages {
		if err := NewPrinter(&b, false).Print(m); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// golden compares with testdata/name; -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}
