package envelope

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/schema"
)

// long is a text of so many bytes.
func long(n int) string { return strings.Repeat("x", n) }

// short shows texts of many x as <n>.
func short(line string) string {
	var b strings.Builder
	for line != "" {
		n := len(line) - len(strings.TrimLeft(line, "x"))
		if n > 9 {
			b.WriteString("<long>")
		} else if n == 0 {
			n = 1
			b.WriteByte(line[0])
		} else {
			b.WriteString(line[:n])
		}
		line = line[n:]
	}
	return b.String()
}

// What gives way in a record that its topic does not take, by the replica identity and the change.
func TestRecordsThatAreTooLargeGiveWay(t *testing.T) {
	const limit = 3000
	columns := []schema.Column{
		col("id", oidInt4, true), col("a", oidText, false), col("b", oidText, false),
		col("ts", oidTimestamp, false),
	}
	big, huge := long(1200), long(2500)
	bad := "\xff" + long(2500) // not UTF-8: the text goes to column_states, twice as long
	for _, c := range []struct {
		name     string
		identity schema.Identity
		required bool
		keyless  bool
		kind     byte
		oldKind  byte
		old, new schema.Tuple
		want     []string
		tooLarge bool
	}{
		{
			name: "what fits is left alone", identity: byDefault, kind: 'c',
			new:  row("1", big, big, null),
			want: []string{"c key=(1) NOT_APPLICABLE before=- key=- after=(1,<long>,<long>,null)"},
		},
		{
			name: "the longest goes first", identity: byDefault, kind: 'c', new: row("1", big, huge, null),
			want: []string{"c key=(1) NOT_APPLICABLE before=- key=- after=(1,<long>,null,null)" +
				" AFTER.b=UNAVAILABLE(left out: 2502 bytes)"},
		},
		{
			name: "as many as it takes", identity: byDefault, kind: 'u', new: row("1", huge+huge, huge+huge, null),
			want: []string{"u key=(1) ABSENT before=- key=- after=(1,null,null,null)" +
				" AFTER.a=UNAVAILABLE(left out: 5002 bytes) AFTER.b=UNAVAILABLE(left out: 5002 bytes)"},
		},
		{
			name: "a text in a state", identity: byDefault, kind: 'u', new: row("1", "a", bad, "infinity"),
			want: []string{"u key=(1) ABSENT before=- key=- after=(1,a,null,null)" +
				" AFTER.b=UNAVAILABLE(left out: 2501 bytes) AFTER.ts=UNREPRESENTABLE(infinity)"},
		},
		{
			name: "the old row goes as a whole", identity: byFull, kind: 'u', oldKind: 'O',
			old: row("1", huge, "b", null), new: row("1", huge, "c", null),
			want: []string{"u key=(1) KEY before=- key=(1) after=(1,<long>,c,null)"},
		},
		{
			name: "and its values are still those of the new one", identity: byFull, kind: 'u', oldKind: 'O',
			old: row("1", huge, big, null), new: row("1", unchanged, unchanged, null),
			want: []string{"u key=(1) KEY before=- key=(1) after=(1,null,<long>,null)" +
				" AFTER.a=UNAVAILABLE(left out: 2502 bytes)"},
		},
		{
			name: "a delete", identity: byFull, kind: 'd', oldKind: 'O', old: row("1", huge, big, null),
			want: []string{"d key=(1) KEY before=- key=(1) after=-", "d key=(1) tombstone"},
		},
		{
			name: "a change of key", identity: byFull, kind: 'u', oldKind: 'O',
			old: row("1", huge, big, null), new: row("2", huge, "b", null),
			want: []string{
				"d key=(1) KEY before=- key=(1) after=-", "d key=(1) tombstone",
				"c key=(2) KEY before=- key=(1) after=(2,<long>,b,null)",
			},
		},
		{
			name: "not the old row that is required", identity: byFull, required: true, kind: 'u',
			oldKind: 'O', old: row("1", big, "a", null), new: row("1", big, big, null),
			want: []string{"u key=(1) FULL before=(1,<long>,a,null) key=(1) after=(1,null,<long>,null)" +
				" AFTER.a=UNAVAILABLE(left out: 1202 bytes)"},
		},
		{
			name: "and if that is too large itself", identity: byFull, required: true, kind: 'd',
			oldKind: 'O', old: row("1", big, huge, null), tooLarge: true,
		},
		{
			name: "not what tells which row it is", identity: byFull, keyless: true, kind: 'u',
			oldKind: 'O', old: row("1", big, "a", null), new: row("1", big, big, null),
			want: []string{"u key=- FULL before=(1,<long>,a,null) key=- after=(1,null,<long>,null)" +
				" AFTER.a=UNAVAILABLE(left out: 1202 bytes)"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options()
			o.BeforeRequired = func(_, _ string) bool { return c.required }
			e := New(o)
			info := withPK
			if c.keyless {
				info = withoutPK
			}
			rel := relation(c.identity, append([]schema.Column(nil), columns...)...)
			table := compile(t, e, rel, info)
			table.SetLimit(limit)
			kind := insert
			switch c.kind {
			case 'u':
				kind = update
			case 'd':
				kind = remove
			}
			recs := encode(t, e, table, change(kind, rel, c.oldKind, c.old, c.new))
			var got []string
			for i := range recs {
				got = append(got, short(render(t, table, recs[i])))
				for _, h := range recs[i].Headers {
					if h.Key == HeaderBeforeImage && recs[i].Value != nil &&
						!strings.Contains(got[len(got)-1], " "+string(h.Value)+" ") {
						t.Errorf("header %s of %s", h.Value, got[len(got)-1])
					}
				}
				if n := recs[i].EncodedSize(); n > limit != c.tooLarge && recs[i].Value != nil {
					t.Errorf("%d bytes, limit %d", n, limit)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" && !c.tooLarge {
				t.Errorf("records (-want +got):\n%s", d)
			}
		})
	}
}

// The limit is to the byte what the record has, with and without headers.
func TestTheLimitIsToTheByte(t *testing.T) {
	for _, headers := range []bool{true, false} {
		o := options()
		o.Headers, o.History = headers, 12
		e := New(o)
		rel := orders(byDefault)
		table := compile(t, e, rel, withPK)
		ev := change(update, rel, 'K', row("2", null), row("1", long(500)))
		whole := encode(t, e, table, ev)
		size := whole[2].EncodedSize()
		for _, c := range []struct {
			limit     int
			truncated int64
		}{{size, 0}, {size - 1, 1}} {
			table.SetLimit(c.limit)
			before := e.Stats()[0].Truncated
			recs := encode(t, e, table, ev)
			if n := e.Stats()[0].Truncated - before; n != c.truncated || recs[2].EncodedSize() > c.limit {
				t.Errorf("headers %v: %d bytes at most: %d truncated, %d bytes", headers, c.limit, n,
					recs[2].EncodedSize())
			}
		}
	}
}
