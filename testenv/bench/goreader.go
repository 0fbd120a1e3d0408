package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

// readerJob is what the parent asks of the reader that stands in for pg_recvlogical.
type readerJob struct {
	URL, Slot, Publication, Until string
}

// reader reads a slot as pg_recvlogical does where that is not installed: eagerly, with a buffer
// of 16 KB, looking at nothing but each message's kind, length and position.
func reader(in io.Reader) error {
	var j readerJob
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	until, err := pglogrepl.ParseLSN(j.Until)
	if err != nil {
		return err
	}
	ctx := context.Background()
	stream, err := openStream(ctx, j.URL, j.Slot, j.Publication)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // the slot is a copy
	return drain(stream, uint64(until))
}

// openStream starts to stream a slot from its own position, and gives the connection's bytes.
func openStream(ctx context.Context, url, slot, publication string) (net.Conn, error) {
	conn, err := pgconn.Connect(ctx, url+"&replication=database")
	if err != nil {
		return nil, err
	}
	err = pglogrepl.StartReplication(ctx, conn, slot, 0, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", "publication_names '" + publication + "'"},
	})
	if err != nil {
		return nil, err
	}
	h, err := conn.Hijack()
	if err != nil {
		return nil, err
	}
	return h.Conn, nil
}

func drain(conn net.Conn, until uint64) error {
	buf, have, reported := make([]byte, 16<<10), 0, time.Now()
	for {
		n, err := conn.Read(buf[have:])
		if err != nil {
			return err
		}
		have += n
		at := 0
		for have-at >= 5 {
			size := 1 + int(binary.BigEndian.Uint32(buf[at+1:]))
			if size > len(buf) {
				buf = append(buf, make([]byte, size)...)
			}
			if have-at < size {
				break
			}
			// CopyData of an XLogData or a keepalive: the position follows its kind.
			if buf[at] == 'd' && size >= 14 && binary.BigEndian.Uint64(buf[at+6:]) >= until {
				return nil
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
}

// statusUpdate says that we are alive and that nothing is durable.
func statusUpdate() []byte {
	m := append([]byte{'d', 0, 0, 0, 38, 'r'}, make([]byte, 33)...)
	return m
}
