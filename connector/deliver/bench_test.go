package deliver

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark-cdc/tidemark/envelope"
)

// BenchmarkSend is the cost of one record from Send to its confirmation, with a broker in the same
// process that throws batches away.
func BenchmarkSend(b *testing.B) {
	for _, codec := range []string{"none", "snappy", "lz4", "zstd"} {
		b.Run(codec, func(b *testing.B) {
			c, err := kfake.NewCluster(
				kfake.NumBrokers(1), kfake.SeedTopics(6, "t"), kfake.BlackholeProduce(),
			)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			o := options(c)
			o.Queue = NewQueue(64<<20, nil)
			o.Producer.Compression = codec
			p, err := New(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			if err := p.EnsureTopic(b.Context(), "t", true); err != nil {
				b.Fatal(err)
			}
			pool := envelope.NewBufferPool(128 << 10)
			buf := pool.Get()
			tx := newAcks()
			recs := make([]envelope.Record, 1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if cap(buf.Bytes)-len(buf.Bytes) < 1000 {
					buf.Release()
					buf = pool.Get()
				}
				from := len(buf.Bytes)
				buf.Bytes = append(buf.Bytes, 0, 0, 0, 0, 7, byte(i), byte(i>>8), byte(i>>16))
				key := buf.Bytes[from:len(buf.Bytes):len(buf.Bytes)]
				buf.Bytes = fmt.Appendf(buf.Bytes, sample, i, i%977, i*31%100_000, i*7)
				buf.Retain()
				recs[0] = envelope.Record{
					Topic: "t", Key: key, HashKey: key[5:], Op: 'c', Buffer: buf,
					Value: buf.Bytes[from+len(key):],
					Headers: []envelope.Header{
						{Key: "tidemark.op", Value: opCreate},
						{Key: "tidemark.history", Value: zero},
						{Key: "tidemark.commit_lsn", Value: key},
						{Key: "tidemark.event_index", Value: zero},
						{Key: "tidemark.before_image", Value: image},
					},
				}
				if err := p.Send(b.Context(), recs, tx); err != nil {
					b.Fatal(err)
				}
			}
			if err := p.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(recs[0].Value)))
		})
	}
}

// sample stands for an envelope: the source block repeats, the row does not.
const sample = "\x00\x02%d\x02status-%d\x02%d customer note %d\x02\x06\x000.1.0" +
	"\x14postgresql\x08shop" +
	"\x80\x80\xa0\xe8\xb2\x64\x0afalse\x08shop\x02[\"23803720\",\"23803648\"]\x0cpublic\x0corders\x02c"

var opCreate, zero, image = []byte("c"), []byte("0"), []byte("NOT_APPLICABLE")
