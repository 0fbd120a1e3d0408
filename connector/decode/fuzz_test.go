package decode

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-cdc/tidemark/schema"
)

// split cuts a corpus entry into frames, each behind its length in four bytes.
func split(data []byte) [][]byte {
	var frames [][]byte
	for len(data) >= 4 {
		n := binary.BigEndian.Uint32(data)
		data = data[4:]
		n = min(n, uint32(len(data)))
		frames = append(frames, data[:n:n])
		data = data[n:]
	}
	return frames
}

func join(frames ...[]byte) []byte {
	var data []byte
	for _, f := range frames {
		data = append(binary.BigEndian.AppendUint32(data, uint32(len(f))), f...)
	}
	return data
}

// FuzzDecode feeds sessions with sequences of arbitrary frames. A frame is decoded to its last
// byte, or refused; and an accepted event says the same when it is encoded again.
func FuzzDecode(f *testing.F) {
	f.Add(join(beginFrame(0x2000, 0, 1), relationFrame(orders()),
		insertFrame(16385, row("7", "seven")),
		updateFrame(16385, 'O', row("7", "seven"), row("7", "u")),
		deleteFrame(16385, 'K', row("7", "")), truncateFrame(3, 16385),
		messageFrame(1, 0x1F80, "app", "x"), commitFrame(0x2000, 0x2030)))
	f.Add(join(wire("Y").u32(70000).str("public").str("mood"), wire("A").u32(5).u32(6)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewSession()
		for _, frame := range split(data) {
			e, err := s.Decode(1, frame)
			if err != nil {
				return
			}
			if again := encode(e, frame); !bytes.Equal(again, frame) {
				t.Fatalf("frame %q\nencodes again as %q", frame, again)
			}
		}
	})
}

// encode is the frame of an event; of what the event does not keep (unused flags, the commit time,
// the namespace's empty form, flag bits without meaning) it takes the frame's own.
func encode(e *Event, frame []byte) []byte {
	switch e.Kind {
	case KindBegin:
		return beginFrame(e.Tx.FinalLSN, e.Tx.CommitMicros-epochMicros, e.Tx.XID)
	case KindCommit:
		again := commitFrame(e.Tx.FinalLSN, e.EndLSN)
		again[1] = frame[1]
		return append(again[:18], frame[18:]...)
	case KindRelation:
		return frame // TestRelationRoundTrip has it
	case KindInsert:
		return insertFrame(e.Relation.OID, e.New)
	case KindUpdate:
		return updateFrame(e.Relation.OID, e.OldKind, e.Old, e.New)
	case KindDelete:
		return deleteFrame(e.Relation.OID, e.OldKind, e.Old)
	case KindTruncate:
		oids := make([]uint32, len(e.Truncated))
		for i, rel := range e.Truncated {
			oids[i] = rel.OID
		}
		return truncateFrame(frame[5], oids...)
	case KindMessage:
		flags := byte(0)
		if e.Transactional {
			flags = 1
		}
		return messageFrame(flags, e.MessageLSN, string(e.Prefix), string(e.Content))
	}
	return frame
}

// FuzzRelationAndTuple builds a relation and a row from the input and expects both back.
func FuzzRelationAndTuple(f *testing.F) {
	f.Add("public", "orders", byte('d'), []byte("\x01tseven\x00n"))
	f.Add("", "pg_class", byte('f'), []byte("\x02u\x01t\xff\xfe"))
	f.Fuzz(func(t *testing.T, namespace, name string, identity byte, cells []byte) {
		if bytes.IndexByte([]byte(namespace+name), 0) >= 0 {
			return // a C string holds no zero byte
		}
		rel, tuple := shape(namespace, name, identity, cells)
		s := NewSession()
		e, err := s.Decode(1, relationFrame(rel))
		if err != nil {
			t.Fatal(err)
		}
		if namespace == "" {
			rel.Namespace = "pg_catalog"
		}
		if diff := cmp.Diff(rel, e.Relation, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		decode(t, s, beginFrame(0x2000, 0, 1))
		e = decode(t, s, updateFrame(rel.OID, 'O', tuple, tuple))
		for _, got := range []schema.Tuple{e.Old, e.New} {
			if diff := cmp.Diff(tuple, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// shape makes a relation and a row: a cell is a length, a kind and so many bytes.
func shape(namespace, name string, identity byte, cells []byte) (*schema.Relation, schema.Tuple) {
	identities := []schema.Identity{'d', 'n', 'f', 'i'}
	rel := &schema.Relation{
		OID: uint32(identity) + 1, Namespace: namespace, Name: name,
		Identity: identities[identity%4],
	}
	var tuple schema.Tuple
	for len(cells) >= 2 && len(tuple) < 1600 {
		size, kind := int(cells[0]), cells[1]
		cells = cells[2:]
		size = min(size, len(cells))
		d := schema.Datum{Kind: schema.DatumNull}
		switch kind {
		case 'u':
			d.Kind = schema.DatumUnchanged
		case 't':
			d = schema.Datum{Kind: schema.DatumText, Text: cells[:size]}
		}
		tuple = append(tuple, d)
		rel.Columns = append(rel.Columns, schema.Column{
			Name: string(rune('a' + len(tuple)%26)), TypeOID: uint32(size), TypeMod: int32(kind) - 2,
			Key: kind%2 == 0,
		})
		cells = cells[size:]
	}
	return rel, tuple
}
