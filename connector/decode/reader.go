package decode

import (
	"bytes"
	"encoding/binary"
)

// reader is a cursor over one frame. All integers of the protocol are big-endian, strings end with
// a zero byte. The first failure sticks: it records where and what, and every later read returns
// zero, so a parser reads straight through and asks once, at its end.
type reader struct {
	buf []byte
	off int

	failed bool
	failAt int
	what   string
}

// fail records the first failure at byte offset at of the frame.
func (r *reader) fail(at int, what string) {
	if !r.failed {
		r.failed, r.failAt, r.what = true, at, what
	}
}

// remaining returns the number of unread bytes; none after a failure.
func (r *reader) remaining() int {
	if r.failed {
		return 0
	}
	return len(r.buf) - r.off
}

// take returns the next n bytes of the frame itself, or nil after a failure.
func (r *reader) take(n int, what string) []byte {
	if r.failed {
		return nil
	}
	if n < 0 || n > len(r.buf)-r.off {
		r.fail(r.off, "the frame ends within "+what)
		return nil
	}
	b := r.buf[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

func (r *reader) uint8(what string) byte {
	b := r.take(1, what)
	if b == nil {
		return 0
	}
	return b[0]
}

func (r *reader) uint16(what string) uint16 {
	b := r.take(2, what)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint16(b)
}

func (r *reader) uint32(what string) uint32 {
	b := r.take(4, what)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

func (r *reader) uint64(what string) uint64 {
	b := r.take(8, what)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// cstring returns the bytes before the next zero byte and moves past it.
func (r *reader) cstring(what string) []byte {
	if r.failed {
		return nil
	}
	n := bytes.IndexByte(r.buf[r.off:], 0)
	if n < 0 {
		r.fail(r.off, "the frame ends within "+what+", which has no closing zero")
		return nil
	}
	b := r.buf[r.off : r.off+n : r.off+n]
	r.off += n + 1
	return b
}

// count checks that n items of at least size bytes fit into the rest of the frame, before anything
// is allocated for them.
func (r *reader) count(n, size int, what string) int {
	if r.failed {
		return 0
	}
	if n < 0 || n > r.remaining()/size {
		r.fail(r.off, "the count of "+what+" is greater than the rest of the frame can hold")
		return 0
	}
	return n
}

// end fails when bytes are left.
func (r *reader) end() {
	if r.remaining() > 0 {
		r.fail(r.off, "bytes follow the end of the message")
	}
}
