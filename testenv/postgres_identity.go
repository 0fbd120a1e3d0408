package testenv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// newIdentity gives a copied data directory a system identifier of its own, as initdb would have.
// Without it all clusters of a template would be one and the same to a client that compares
// identifiers, and no test could tell that Tidemark notices another server in the old one's place.
//
// The identifier stands in two places, in the byte order of the machine:
//
//   - global/pg_control: the first 8 bytes of ControlFileData (catalog/pg_control.h). Its last member
//     is a CRC-32C of all before it, whose offset depends on the version: it is where the sum fits.
//   - the first page of each WAL segment: xlp_sysid of XLogLongPageHeaderData
//     (access/xlog_internal.h), at byte 24. Pages have no checksum.
func newIdentity(data string) error {
	identity := uint64(time.Now().Unix())<<32 | uint64(rand.Uint32())
	if err := changeControlFile(filepath.Join(data, "global", "pg_control"), identity); err != nil {
		return err
	}
	segments, err := filepath.Glob(filepath.Join(data, "pg_wal", "????????????????????????"))
	if err != nil {
		return err
	}
	for _, path := range segments {
		if err := writeAt(path, 24, binary.NativeEndian.AppendUint64(nil, identity)); err != nil {
			return err
		}
	}
	return nil
}

func changeControlFile(path string, identity uint64) error {
	control, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	// The structure has some 300 bytes; the file is filled up to 8 KiB with zeros.
	for end := 128; end <= 512 && end+4 <= len(control); end += 4 {
		if crc32.Checksum(control[:end], table) != binary.NativeEndian.Uint32(control[end:]) {
			continue
		}
		binary.NativeEndian.PutUint64(control, identity)
		binary.NativeEndian.PutUint32(control[end:], crc32.Checksum(control[:end], table))
		return writeAt(path, 0, control[:end+4])
	}
	return fmt.Errorf("%s: no checksum found in the first 512 bytes", path)
}

func writeAt(path string, offset int64, bytes []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.WriteAt(bytes, offset)
	return err
}
