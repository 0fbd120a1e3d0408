package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// chunks is a connection that gives so many bytes a read; nothing is ever written to it.
type chunks struct {
	net.Conn
	data []byte
	size int
}

func (c *chunks) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), c.size)], c.data)
	c.data = c.data[n:]
	if n == 0 {
		return 0, net.ErrClosed
	}
	return n, nil
}

func (c *chunks) SetReadDeadline(time.Time) error { return nil }

func streamOf(data []byte, size int) *Stream {
	return newStream(&pgconn.HijackedConn{Conn: &socket{Conn: &chunks{data: data, size: size}}},
		StartOptions{}, time.Minute)
}

func xlogData(start, end uint64, payload string) []byte {
	m := binary.BigEndian.AppendUint32([]byte{'d'}, uint32(4+25+len(payload)))
	m = append(m, 'w')
	m = binary.BigEndian.AppendUint64(m, start)
	m = binary.BigEndian.AppendUint64(m, end)
	m = binary.BigEndian.AppendUint64(m, 1_000_000) // a second after PostgreSQL's epoch
	return append(m, payload...)
}

func notice(kind byte, severity, code, text string) []byte {
	body := "S" + severity + "\x00V" + severity + "\x00C" + code + "\x00M" + text +
		"\x00DFailing row contains (secret).\x00\x00"
	m := binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+len(body)))
	return append(m, body...)
}

func TestFramesAreCutOutOfReadsOfAnySize(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("L", 3*bufferBytes)
	for _, size := range []int{1, 3, 7, 1000, 4 << 20} {
		middle := xlogData(0x30, 0x30, large)
		if size < 1000 {
			middle = nil // byte by byte it takes long and says nothing new
		}
		data := bytes.Join([][]byte{
			xlogData(0x10, 0x10, "first"),
			keepalive(0x20, 1),
			{'S', 0, 0, 0, 8, 'a', 0, 'b', 0},
			notice('N', "NOTICE", "00000", "ignored"),
			notice('N', "WARNING", "01000", `skipped loading publication "pub"`),
			xlogData(0, 0, ""),
			middle,
			xlogData(0x28, 0x28, "last"),
		}, nil)
		st := streamOf(data, size)
		var got []string
		for {
			f, err := st.Next(context.Background())
			if err != nil {
				if fault.CodeOf(err) != fault.PostgresUnreachable {
					t.Fatalf("size %d: %v", size, err)
				}
				break
			}
			switch f.Kind {
			case Data:
				if f.ServerMicros != 946_684_801_000_000 {
					t.Errorf("server's clock %d", f.ServerMicros)
				}
				got = append(got, f.Start.String()+" "+string(f.Payload))
			case Keepalive:
				got = append(got, "keepalive "+f.ServerEnd.String())
			case Notice:
				got = append(got, f.Warning.Severity+" "+f.Warning.Code+" "+f.Warning.Message)
			}
		}
		want := []string{
			"0/10 first", "keepalive 0/20", `WARNING 01000 skipped loading publication "pub"`, "0/0 ",
		}
		if size >= 1000 {
			want = append(want, "0/30 "+large)
		}
		want = append(want, "0/28 last")
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("size %d: %.200q", size, got)
		}
		if size >= 1000 && st.Received() != 0x30 || size < 1000 && st.Received() != 0x28 {
			t.Errorf("size %d: received %s", size, st.Received())
		}
	}
}

func TestTheBufferGrowsForALargeMessageAndShrinksAfterwards(t *testing.T) {
	t.Parallel()
	data := xlogData(0x10, 0x10, strings.Repeat("L", 5*bufferBytes))
	for range 200 {
		data = append(data, xlogData(0x20, 0x20, strings.Repeat("s", 100_000))...)
	}
	st := streamOf(data, bufferBytes)
	for i := range 201 {
		f, err := st.Next(context.Background())
		if err != nil || len(f.Payload) != 100_000 && i > 0 {
			t.Fatalf("frame %d: %d bytes, %v", i, len(f.Payload), err)
		}
		if i == 0 && len(st.buf.bytes) != 8*bufferBytes {
			t.Errorf("a buffer of %d bytes", len(st.buf.bytes))
		}
	}
	if n := len(st.buf.bytes); n != bufferBytes {
		t.Errorf("the buffer stays at %d bytes", n)
	}
}

func TestAFrameCostsNoAllocation(t *testing.T) {
	const frames = 10_000
	data := bytes.Repeat(xlogData(0x10, 0x10, strings.Repeat("x", 200)), frames)
	st := streamOf(data, 1<<20)
	ctx := context.Background()
	if _, err := st.Next(ctx); err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(frames-10, func() {
		if _, err := st.Next(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

func TestWhatDoesNotBelongInAStreamEndsIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		data []byte
		code fault.Code
		want string
	}{
		"a frame of more than 1 GiB": {
			[]byte{'d', 0x40, 0, 0, 1, 'w'}, fault.ProtocolError, "impossible length 1073741825",
		},
		"a length below its own": {[]byte{'d', 0, 0, 0, 3}, fault.ProtocolError, "impossible length 3"},
		"a short XLogData": {
			[]byte{'d', 0, 0, 0, 6, 'w', 0}, fault.ProtocolError, "kind 0x77 has a header",
		},
		"a long keepalive": {
			append([]byte{'d', 0, 0, 0, 23}, make([]byte, 19)...), fault.ProtocolError, "kind 0x00",
		},
		"an empty CopyData":  {[]byte{'d', 0, 0, 0, 4}, fault.ProtocolError, "kind 0x00"},
		"an unknown message": {[]byte{'D', 0, 0, 0, 4}, fault.ProtocolError, "kind 0x44 does not belong"},
		"CopyDone":           {[]byte{'c', 0, 0, 0, 4}, fault.PostgresUnreachable, "ended the stream"},
		"an error": {
			notice('E', "FATAL", "57P01", "terminating connection"), fault.PostgresUnreachable, "57P01",
		},
		"a lost slot": {
			notice('E', "ERROR", "55000", `can no longer get changes from replication slot "s"`),
			fault.SlotLost, "can no longer",
		},
		"a removed segment": {
			notice('E', "ERROR", "58P01", "requested WAL segment has already been removed"),
			fault.SlotLost, "already been removed",
		},
	} {
		_, err := streamOf(tt.data, 4096).Next(context.Background())
		if fault.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s: %s", name, err, tt.code, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") && tt.code != fault.SlotLost &&
			!strings.Contains(err.Error(), "57P01") {
			t.Errorf("%s: a row's value is in the error: %v", name, err)
		}
	}
}
