package decode

import (
	"slices"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Clone returns a copy of e that stays valid. before is the Tx of the clone before it, or nil: two
// clones of one transaction share theirs.
func (e *Event) Clone(before *Tx) *Event {
	c := *e
	if e.Tx != nil {
		c.Tx = before
		if before == nil || *before != *e.Tx {
			tx := *e.Tx
			c.Tx = &tx
		}
	}
	texts := make([]byte, 0, textBytes(e.Old)+textBytes(e.New)+len(e.Prefix)+len(e.Content))
	c.Old, texts = cloneTuple(e.Old, texts)
	c.New, texts = cloneTuple(e.New, texts)
	c.Prefix, texts = cloneBytes(e.Prefix, texts)
	c.Content, _ = cloneBytes(e.Content, texts)
	c.Truncated = slices.Clone(e.Truncated)
	return &c
}

// Size is about what a Clone of e takes in memory.
func (e *Event) Size() int64 {
	const fixed, datum = 256, 32
	return int64(fixed + datum*(len(e.Old)+len(e.New)) + textBytes(e.Old) + textBytes(e.New) +
		len(e.Prefix) + len(e.Content) + 8*len(e.Truncated))
}

func textBytes(t schema.Tuple) (n int) {
	for i := range t {
		n += len(t[i].Text)
	}
	return n
}

// cloneTuple copies t, whose texts go behind texts, which has room for them.
func cloneTuple(t schema.Tuple, texts []byte) (schema.Tuple, []byte) {
	if t == nil {
		return nil, texts
	}
	out := make(schema.Tuple, len(t))
	for i := range t {
		out[i].Kind = t[i].Kind
		out[i].Text, texts = cloneBytes(t[i].Text, texts)
	}
	return out, texts
}

func cloneBytes(b, texts []byte) (clone, rest []byte) {
	if b == nil {
		return nil, texts
	}
	from := len(texts)
	texts = append(texts, b...)
	return texts[from:len(texts):len(texts)], texts
}
