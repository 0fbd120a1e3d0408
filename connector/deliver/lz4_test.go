package deliver

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The frame says what it says for Kafka's own producer: version 1, independent blocks, no checksum
// (0x60), of 64 KiB at most (0x40). A consumer takes a buffer of that size for each batch.
func TestLZ4BlocksAreSmall(t *testing.T) {
	c := newLZ4Compressor()
	var text []byte
	for i := range 3000 {
		text = fmt.Appendf(text, sample, i, i%977, i*31%100_000, i*7)
	}
	for _, size := range []int{1, 1000, 64 << 10, len(text)} {
		packed, codec := c.Compress(&bytes.Buffer{}, text[:size])
		if codec != kgo.CodecLz4 {
			t.Fatalf("%d bytes: codec %d", size, codec)
		}
		if !bytes.HasPrefix(packed, []byte{0x04, 0x22, 0x4d, 0x18, 0x60, 0x40}) {
			t.Errorf("%d bytes: the frame begins with % x", size, packed[:6])
		}
		plain, err := kgo.DefaultDecompressor().Decompress(packed, kgo.CodecLz4)
		if err != nil || !bytes.Equal(plain, text[:size]) {
			t.Errorf("%d bytes came back as %d: %v", size, len(plain), err)
		}
		if size == len(text) && len(packed) > size/4 {
			t.Errorf("%d bytes became %d", size, len(packed))
		}
	}
}
