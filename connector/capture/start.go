package capture

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// StartOptions say what to stream from where.
type StartOptions struct {
	Slot        string
	Publication string // one publication, exactly as it is named
	// Start is the position to go on from. The server checks nothing: an older one than the slot's
	// is taken as the slot's, one beyond its WAL swallows commits.
	Start    offsets.LSN
	Messages bool // ask for logical messages (14 and later; ignored before)
	// ServerVersion is the number of server_version_num; 0 is what the connection said itself.
	ServerVersion int
	ReceiveBuffer int           // bytes; 0 is 4 MiB, negative leaves it to the kernel
	StatusTimeout time.Duration // longest a status update may take to write; 0 is 30 s
	// StatusInterval is the longest pause between status updates; 0 is 10 s. Half of the server's
	// wal_sender_timeout is used when that is less.
	StatusInterval time.Duration
}

const (
	defaultReceiveBuffer  = 4 << 20
	defaultStatusInterval = 10 * time.Second
	defaultStatusTimeout  = 30 * time.Second
	silenceMin            = 60 * time.Second
)

// Start begins to stream. It uses the Conn up: the connection belongs to the Stream afterwards, and
// is closed when Start fails. Once it returns the slot is ours. ctx bounds the start only.
//
// Besides the faults of pgdial.Wrap: slot_missing, slot_in_use, slot_foreign, slot_lost.
func (c *Conn) Start(ctx context.Context, o StartOptions) (*Stream, error) {
	timeout, err := c.walSenderTimeout(ctx)
	if err == nil {
		err = c.pg.SyncConn(ctx)
	}
	if err != nil {
		_ = c.pg.Close(ctx) // broken anyhow
		return nil, pgdial.Wrap(err)
	}
	if o.ServerVersion == 0 {
		o.ServerVersion = c.ServerVersion()
	}
	hijacked, err := c.pg.Hijack()
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	s := newStream(hijacked, o, timeout)
	if err := s.begin(ctx, startCommand(o)); err != nil {
		_ = s.conn.Close() // the error that matters is the one at hand
		return nil, startFault(o.Slot, err)
	}
	go s.status.run()
	return s, nil
}

// walSenderTimeout asks for the server's wal_sender_timeout as this session has it; 0 is none.
func (c *Conn) walSenderTimeout(ctx context.Context) (time.Duration, error) {
	results, err := c.pg.Exec(ctx,
		"SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_sender_timeout'").ReadAll()
	if err != nil {
		return 0, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return 0, fault.New(fault.ProtocolError, "the server does not know wal_sender_timeout")
	}
	millis, err := strconv.ParseInt(string(results[0].Rows[0][0]), 10, 64)
	if err != nil {
		return 0, fault.New(fault.ProtocolError, "wal_sender_timeout is not a number")
	}
	return time.Duration(millis) * time.Millisecond, nil
}

// startCommand returns the START_REPLICATION command. publication_names is a list of identifiers
// within a string constant, so the name is quoted once as each.
func startCommand(o StartOptions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "START_REPLICATION SLOT %s LOGICAL %s (proto_version '1', publication_names %s",
		quoteIdent(o.Slot), o.Start, quoteLiteral(quoteIdent(o.Publication)))
	if o.Messages && o.ServerVersion >= 140000 {
		b.WriteString(", messages 'true'")
	}
	b.WriteString(")")
	return b.String()
}

// begin sends the command as a simple query and reads until the server's CopyBothResponse.
func (s *Stream) begin(ctx context.Context, command string) error {
	query := make([]byte, 0, headerBytes+len(command)+1)
	query = append(query, 'Q')
	query = binary.BigEndian.AppendUint32(query, uint32(4+len(command)+1))
	query = append(query, command...)
	query = append(query, 0)
	if err := s.conn.SetWriteDeadline(time.Now().Add(s.status.timeout)); err != nil {
		return err
	}
	if _, err := s.conn.Write(query); err != nil {
		return err
	}
	for {
		kind, body, ok, err := s.buf.message()
		switch {
		case err != nil:
			return err
		case !ok:
			if err := s.fill(ctx); err != nil {
				return err
			}
		case kind == 'W':
			return nil
		case kind == 'E':
			pg, err := serverErrorOf(body)
			if err != nil {
				return err
			}
			return pg
		case kind == 'N', kind == 'S':
		default:
			return fault.New(fault.ProtocolError, fmt.Sprintf(
				"START_REPLICATION is answered with a message of kind 0x%02X", kind))
		}
	}
}

// newStream makes a Stream of a hijacked connection; wst is wal_sender_timeout.
func newStream(h *pgconn.HijackedConn, o StartOptions, wst time.Duration) *Stream {
	if o.ReceiveBuffer == 0 {
		o.ReceiveBuffer = defaultReceiveBuffer
	}
	if o.StatusInterval == 0 {
		o.StatusInterval = defaultStatusInterval
	}
	if o.StatusTimeout == 0 {
		o.StatusTimeout = defaultStatusTimeout
	}
	if wst > 0 {
		o.StatusInterval = min(o.StatusInterval, wst/2)
	}
	s := &Stream{
		conn:   h.Conn,
		sock:   socketOf(h.Conn),
		pid:    h.PID,
		limit:  max(2*wst, silenceMin),
		buf:    buffer{bytes: make([]byte, bufferBytes)},
		status: newStatus(h.Conn, o.StatusInterval, o.StatusTimeout),
	}
	s.status.failed = s.interrupt
	s.sock.stream(o.ReceiveBuffer)
	return s
}
