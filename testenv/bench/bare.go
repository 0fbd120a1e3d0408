package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// bareJob is what the parent asks of the bare reader.
type bareJob struct {
	URL, Slot, Publication, Topic string
	Brokers                       []string
}

// bare is the shortest way from a slot to a topic: every message is read as soon as it is there,
// and an insert's text goes to the broker as it is, with linger 0 and under its first column. It
// promises nothing. Latency is measured over it.
func bare(in io.Reader) error {
	var j bareJob
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	ctx := context.Background()
	client, err := kgo.NewClient(kgo.SeedBrokers(j.Brokers...), kgo.ProducerLinger(0),
		kgo.DefaultProduceTopic(j.Topic), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	if err != nil {
		return err
	}
	defer client.Close()
	stream, err := openStream(ctx, j.URL, j.Slot, j.Publication)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // the slot is dropped
	return forward(ctx, stream, client)
}

// xLog is what stands before a message in the copy stream: kind, size, 'w', three times 8 bytes.
const xLog = 5 + 1 + 24

func forward(ctx context.Context, conn net.Conn, client *kgo.Client) error {
	buf, have, reported := make([]byte, 64<<10), 0, time.Now()
	var failed atomic.Pointer[error]
	for failed.Load() == nil {
		n, err := conn.Read(buf[have:])
		if err != nil {
			return err
		}
		have += n
		at := 0
		for have-at >= 5 {
			size := 1 + int(binary.BigEndian.Uint32(buf[at+1:]))
			if size > len(buf) {
				return fmt.Errorf("a message of %d bytes", size)
			}
			if have-at < size {
				break
			}
			if key, ok := firstColumn(buf[at : at+size]); ok {
				r := &kgo.Record{
					Key:   fmt.Appendf(nil, `{"id":%s}`, key),
					Value: append([]byte(nil), buf[at+xLog:at+size]...),
				}
				client.Produce(ctx, r, func(_ *kgo.Record, err error) {
					if err != nil {
						failed.Store(&err)
					}
				})
			}
			at += size
		}
		have = copy(buf, buf[at:have])
		if time.Since(reported) > 10*time.Second {
			reported = time.Now()
			if _, err := conn.Write(statusUpdate()); err != nil {
				return err
			}
		}
	}
	return errors.Join(*failed.Load())
}

// firstColumn is the text of the first column of an insert: 'I', the relation's 4 bytes, 'N', the
// columns' number in 2, then 't' and a length in 4.
func firstColumn(frame []byte) ([]byte, bool) {
	if len(frame) < xLog+13 || frame[5] != 'w' || frame[xLog] != 'I' {
		return nil, false
	}
	text := frame[xLog+13:]
	size := int(binary.BigEndian.Uint32(frame[xLog+9:]))
	if frame[xLog+8] != 't' || size > len(text) {
		return nil, false
	}
	return text[:size], true
}
