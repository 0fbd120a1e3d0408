package decode

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

func TestAFrameThatIsNotPgoutputIsRefusedWithMessageByteAndLSN(t *testing.T) {
	open := [][]byte{beginFrame(0x2000, 0, 1), relationFrame(orders())}
	tests := []struct {
		name   string
		before [][]byte
		frame  []byte
		want   string
	}{
		{"empty", nil, nil, "empty frame at LSN 0/ABC, byte 0 of 0: the frame ends within"},
		{"unknown kind", nil, []byte("Z"), "message of kind 0x5A at LSN 0/ABC, byte 0 of 1: "},
		{"stream start", nil, []byte("S\x00\x00\x00\x01\x01"), "message of kind 0x53"},
		{"begin in begin", open, beginFrame(0x3000, 0, 2), "Begin message at LSN 0/ABC, byte 0"},
		{"final LSN 0", nil, beginFrame(0, 0, 2), "byte 1 of 21: the final LSN is 0"},
		{"short begin", nil, beginFrame(0x10, 0, 2)[:20], "byte 17 of 20: the frame ends within"},
		{"long begin", nil, append(beginFrame(0x10, 0, 2), 0), "byte 21 of 22: bytes follow"},
		{"commit without begin", nil, commitFrame(0x2000, 0x2030), "and none is open"},
		{
			"another commit LSN", open, commitFrame(0x2008, 0x2030),
			"Commit message at LSN 0/ABC, byte 2 of 26: the commit LSN is 0/2008, " +
				"but Begin's final LSN was 0/2000",
		},
		{"end before commit", open, commitFrame(0x2000, 0x2000), "byte 10 of 26: the end LSN 0/2000"},
		{
			"row without begin",
			[][]byte{relationFrame(orders())},
			insertFrame(16385, row("1", "a")),
			"Insert message at LSN 0/ABC, byte 0 of 20: the message belongs to a transaction",
		},
		{
			"truncate without begin",
			[][]byte{relationFrame(orders())},
			truncateFrame(0, 16385),
			"Truncate message at LSN 0/ABC, byte 0",
		},
		{"transactional message without begin", nil, messageFrame(1, 1, "p", ""), "and none is open"},
		{
			"unknown relation", open, insertFrame(4, row("1", "a")),
			"byte 1 of 20: relation OID 4 was not announced in this session",
		},
		{"unknown truncated relation", open, truncateFrame(0, 16385, 4), "byte 10 of 14: relation OID 4"},
		{
			"columns missing", open, insertFrame(16385, row("1")),
			"byte 6 of 14: the tuple has 1 columns, but relation public.orders has 2",
		},
		{"columns too many", open, insertFrame(16385, row("1", "a", "b")), "the tuple has 3 columns"},
		{"insert of an old row", open, deleteFrameAs('I', 'K'), "byte 5 of 15: the tuple's tag is not N"},
		{
			"update without new row", open, updateFrame(16385, 'K', row("1", ""), nil)[:15],
			"byte 15 of 15: the frame ends within the tuple's tag",
		},
		{"update with two old rows", open, deleteFrameAs('U', 'K', 'K'), "the tuple's tag is not N"},
		{"delete of a new row", open, deleteFrameAs('D', 'N'), "the tuple's tag is neither K nor O"},
		{
			"binary value", open, wire("I").u32(16385).u8('N').u16(2).u8('b').u32(1).u8(0).u8('n'),
			"byte 8 of 15: a value is in binary, which was not asked for",
		},
		{
			"unknown kind of value", open, wire("I").u32(16385).u8('N').u16(2).u8('x').u8('n'),
			"byte 8 of 10: a value's kind is 0x78",
		},
		{
			"value too long", open, wire("I").u32(16385).u8('N').u16(2).u8('n').u8('t').u32(2).u8('a'),
			"byte 10 of 15: a value is longer than the rest of the frame",
		},
		{
			"negative length", open, wire("I").u32(16385).u8('N').u16(2).u8('n').u8('t').u32(0xFFFFFFFF),
			"byte 10 of 14: a value is longer",
		},
		{
			"cut in a length", open, wire("I").u32(16385).u8('N').u16(2).u8('n').u8('t').u16(0),
			"byte 10 of 12: the frame ends within a value's length",
		},
		{
			"cut in a tuple", open, wire("I").u32(16385).u8('N').u16(2).u8('n'),
			"byte 9 of 9: the frame ends within a tuple",
		},
		{
			"trailing bytes", open, append(insertFrame(16385, row("1", "a")), 'x'),
			"byte 20 of 21: bytes follow the end of the message",
		},
		{
			"65535 columns in 3 bytes", nil,
			append(wire("R").u32(1).str("s").str("t").u8('d').u16(65535), 1, 2, 3),
			"byte 12 of 15: the count of columns is greater than the rest",
		},
		{
			"unknown identity", nil, wire("R").u32(1).str("s").str("t").u8('x').u16(0),
			"byte 9 of 12: the replica identity is none of",
		},
		{
			"name without an end", nil, append(wire("R").u32(1).str("s"), "tab"...),
			"byte 7 of 10: the frame ends within the relation name",
		},
		{
			"two thousand million relations", open, wire("T").u32(0x7FFFFFFF).u8(0).u32(16385),
			"byte 6 of 10: the count of relations",
		},
		{
			"minus one relations", open, wire("T").u32(0xFFFFFFFF).u8(0).u32(16385),
			"byte 6 of 10: the count of relations",
		},
		{"unknown message flags", nil, messageFrame(2, 1, "p", ""), "the flags are neither 0 nor 1"},
		{
			"message cut", nil, messageFrame(0, 1, "p", "abc")[:17],
			"byte 16 of 17: the frame ends within the content",
		},
		{"half of a stream abort", nil, wire("A").u32(1).u32(2).u32(3), "Stream Abort message"},
		{"type cut", nil, wire("Y").u32(1).str("s"), "Type message"},
		{"origin cut", open, wire("O").u64(1), "Origin message"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSession()
			decode(t, s, tt.before...)
			e, err := s.Decode(offsets.LSN(0xABC), tt.frame)
			if err == nil {
				t.Fatalf("accepted: %+v", e)
			}
			if fault.CodeOf(err) != fault.ProtocolError {
				t.Errorf("code %s", fault.CodeOf(err))
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error\n  %v\nwant\n  ...%s...", err, tt.want)
			}
		})
	}
}

// deleteFrameAs is a message of the given kind with as many old rows as tags.
func deleteFrameAs(kind byte, tags ...byte) []byte {
	w := wire{kind}.u32(16385)
	for _, tag := range tags {
		w = w.u8(tag).tuple(row("1", ""))
	}
	return w
}

func TestASessionIsOverAfterItsFirstError(t *testing.T) {
	s := NewSession()
	_, first := s.Decode(1, []byte("Z"))
	_, second := s.Decode(2, beginFrame(0x2000, 0, 1))
	if first == nil || !errors.Is(second, first) {
		t.Fatalf("after %v the next frame gives %v", first, second)
	}
}
