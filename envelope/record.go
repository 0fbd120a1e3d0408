package envelope

import (
	"sync"
	"sync/atomic"

	"github.com/tidemark-cdc/tidemark/offsets"
)

// Route says to which partitions of its topic a record goes.
type Route byte

// Routes.
const (
	RouteKey  Route = iota // murmur2 of HashKey
	RouteOne               // one partition, chosen by the topic's name: tables without a key, messages
	RouteEach              // a copy to every partition: truncate
)

// Header is a record header; both slices are borrowed from the record's Buffer or are constants.
type Header struct {
	Key   string
	Value []byte
}

// Record is an encoded event on its way to Kafka. Key and Value are nil for null (a tombstone has
// a nil Value). All slices point into Buffer, which the record holds one reference of: whoever
// consumes the record calls Buffer.Release once, when the broker has confirmed it or it is dropped.
type Record struct {
	Topic   string
	Key     []byte // Confluent wire format: 0x00, schema id (4 bytes, big endian), Avro body
	HashKey []byte // what the partition is computed from: the key's Avro body (or all of Key)
	Value   []byte
	Headers []Header
	Route   Route
	Op      byte // 'c','u','d','r','t','m'
	Pos     offsets.Position
	Buffer  *Buffer
}

// Size is what the record counts for in max.queue.bytes: key, value, headers and a fixed
// overhead that covers the structures around them.
func (r *Record) Size() int {
	n := recordOverhead + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// recordOverhead is what a record costs in memory beside its bytes: Record, kgo.Record and the
// client's own entry; measured roughly, rounded up.
const recordOverhead = 320

// Buffer is a block of bytes that records share. It goes back to its pool when the last
// reference is released.
type Buffer struct {
	Bytes []byte
	// headers is the slab that the records' Headers are cut from. When it is full a new one takes
	// its place; slices of the old one stay what they are.
	headers []Header
	refs    atomic.Int64
	pool    *BufferPool
}

// BufferPool hands out Buffers of a starting capacity.
type BufferPool struct {
	pool     sync.Pool
	capacity int
}

// NewBufferPool returns a pool whose Buffers start with this capacity in bytes. A Buffer that
// grew to more than four times of it is left to the garbage collector.
func NewBufferPool(capacity int) *BufferPool { return &BufferPool{capacity: capacity} }

// Get returns an empty Buffer with one reference, the caller's.
func (p *BufferPool) Get() *Buffer {
	b, _ := p.pool.Get().(*Buffer)
	if b == nil {
		b = &Buffer{Bytes: make([]byte, 0, p.capacity), pool: p}
	}
	b.refs.Store(1)
	return b
}

// Retain adds a reference.
func (b *Buffer) Retain() { b.refs.Add(1) }

// Release gives a reference back; the Buffer must not be touched after it.
func (b *Buffer) Release() {
	switch n := b.refs.Add(-1); {
	case n < 0:
		panic("envelope: Buffer released more often than retained")
	case n == 0 && cap(b.Bytes) <= 4*b.pool.capacity:
		b.Bytes, b.headers = b.Bytes[:0], b.headers[:0]
		b.pool.pool.Put(b)
	}
}
