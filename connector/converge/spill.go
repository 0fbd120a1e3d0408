package converge

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"io"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fanout is the number of files of a spill, refanout that of a file that was too large. Each has a
// buffer of bufferSize while it is written: both sides together take 2 MiB.
const (
	fanout     = 64
	refanout   = 8
	bufferSize = 16 << 10
)

// maxLevels bounds how often files are split: 64 * 8^5 are two million pairs.
const maxLevels = 6

// seeds has a hash function for each level: keys that share a file part at the next.
type seeds [maxLevels]maphash.Seed

func newSeeds() (s seeds) {
	for i := range s {
		s[i] = maphash.MakeSeed()
	}
	return s
}

// spill is a set of entries in files, by the hash of the key's body.
type spill struct {
	seed  maphash.Seed
	files []*spillFile
}

type spillFile struct {
	f *os.File
	w *bufio.Writer
}

// newSpill makes its files in dir. Their names are taken away at once, so that a process that is
// killed leaves nothing behind; where a system refuses that, close does it.
func newSpill(dir string, seed maphash.Seed, files int) (*spill, error) {
	s := &spill{seed: seed, files: make([]*spillFile, files)}
	for i := range s.files {
		f, err := os.CreateTemp(dir, "tidemark-repair-")
		if err != nil {
			s.close()
			return nil, diskFault(err)
		}
		_ = os.Remove(f.Name())
		s.files[i] = &spillFile{f, bufio.NewWriterSize(f, bufferSize)}
	}
	return s, nil
}

func (s *spill) close() {
	for i, f := range s.files {
		if f != nil {
			_ = f.f.Close() // nothing reads it any more
			_ = os.Remove(f.f.Name())
			s.files[i] = nil
		}
	}
}

func (s *spill) write(body, entry []byte) error {
	f := s.files[maphash.Bytes(s.seed, body)%uint64(len(s.files))]
	if _, err := f.w.Write(binary.AppendUvarint(nil, uint64(len(entry)))); err != nil {
		return diskFault(err)
	}
	if _, err := f.w.Write(entry); err != nil {
		return diskFault(err)
	}
	return nil
}

// read calls fn with each entry, in the order in which they were written.
func (f *spillFile) read(fn func(entry []byte) error) error {
	if err := f.w.Flush(); err != nil {
		return diskFault(err)
	}
	if _, err := f.f.Seek(0, io.SeekStart); err != nil {
		return diskFault(err)
	}
	r := bufio.NewReaderSize(f.f, 4*bufferSize)
	var entry []byte
	for {
		n, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return diskFault(err)
		}
		if uint64(cap(entry)) < n {
			entry = make([]byte, n)
		}
		entry = entry[:n]
		if _, err := io.ReadFull(r, entry); err != nil {
			return diskFault(err)
		}
		if err := fn(entry); err != nil {
			return err
		}
	}
}

// An entry of the table's side is the key's body.
func tableEntry(body []byte) []byte { return body }

// An entry of the topic's side: flags, partition, offset, the record's key.
const (
	flagLive byte = 1 << iota
	flagSame      // its schema is as the table's key
)

func topicEntry(rec *kgo.Record, live, same bool) []byte {
	entry := make([]byte, 1, 1+2*binary.MaxVarintLen64+len(rec.Key))
	if live {
		entry[0] |= flagLive
	}
	if same {
		entry[0] |= flagSame
	}
	entry = binary.AppendUvarint(entry, uint64(rec.Partition))
	entry = binary.AppendUvarint(entry, uint64(rec.Offset))
	return append(entry, rec.Key...)
}

type topicKey struct {
	live, same bool
	partition  int32
	offset     int64
	key        []byte
}

func parseTopicEntry(b []byte) topicKey {
	k := topicKey{live: b[0]&flagLive != 0, same: b[0]&flagSame != 0}
	partition, n := binary.Uvarint(b[1:])
	offset, m := binary.Uvarint(b[1+n:])
	k.partition, k.offset, k.key = int32(partition), int64(offset), b[1+n+m:]
	return k
}
