package deliver

import (
	"bytes"
	"sync"

	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lz4Compressor writes what Kafka's own producer writes: frames of independent blocks of 64 KiB
// without a checksum, since the batch has one. The client's compressor declares blocks of 4 MiB
// however small the batch is: two such buffers for each batch that is being compressed, and one
// for whoever reads it.
type lz4Compressor struct{ writers sync.Pool }

func newLZ4Compressor() *lz4Compressor {
	return &lz4Compressor{writers: sync.Pool{New: func() any {
		w := lz4.NewWriter(nil)
		if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)); err != nil {
			panic(err) // two constants that the library knows
		}
		return w
	}}}
}

// Compress implements kgo.Compressor.
func (c *lz4Compressor) Compress(
	dst *bytes.Buffer, src []byte, _ ...kgo.CompressFlag,
) ([]byte, kgo.CompressionCodecType) {
	w := c.writers.Get().(*lz4.Writer)
	defer c.writers.Put(w)
	w.Reset(dst)
	if _, err := w.Write(src); err != nil {
		return nil, kgo.CodecError
	}
	if err := w.Close(); err != nil {
		return nil, kgo.CodecError
	}
	return dst.Bytes(), kgo.CodecLz4
}
