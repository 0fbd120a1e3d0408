package capture

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// Conn is a replication connection that takes commands. It is not safe for concurrent use. It ends
// with Close, or with Start, which turns it into a Stream.
type Conn struct {
	pg *pgconn.PgConn
}

// System is what IDENTIFY_SYSTEM says of the server.
type System struct {
	SystemID string
	Timeline int32
	WAL      offsets.LSN // flush position, on a standby the replay position
	Database string
}

// TimelineSwitch is a line of a timeline's history: the server left Timeline at Switch.
type TimelineSwitch struct {
	Timeline int32
	Switch   offsets.LSN
	Reason   string
}

// Dial opens a replication connection to db's database. Errors are faults of pgdial.Wrap.
func Dial(ctx context.Context, db config.Database, appName string) (*Conn, error) {
	cfg, err := pgdial.Config(db, appName, true)
	if err != nil {
		return nil, err
	}
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &socket{Conn: conn}, nil
	}
	pg, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	return &Conn{pg: pg}, nil
}

// PID returns the process id of the server's walsender for this connection.
func (c *Conn) PID() uint32 { return c.pg.PID() }

// ServerVersion returns the server's version as a number, 180004 for 18.4; 0 when it did not say.
func (c *Conn) ServerVersion() int { return versionNumber(c.pg.ParameterStatus("server_version")) }

// Close ends the connection. It is idempotent.
func (c *Conn) Close(ctx context.Context) error { return c.pg.Close(ctx) }

// Identify asks IDENTIFY_SYSTEM.
func (c *Conn) Identify(ctx context.Context) (System, error) {
	r, err := pglogrepl.IdentifySystem(ctx, c.pg)
	if err != nil {
		return System{}, pgdial.Wrap(err)
	}
	return System{
		SystemID: r.SystemID,
		Timeline: r.Timeline,
		WAL:      offsets.LSN(r.XLogPos),
		Database: r.DBName,
	}, nil
}

// TimelineHistory asks for the history of timeline tli: where each earlier one was left, oldest
// first. The first timeline has none.
func (c *Conn) TimelineHistory(ctx context.Context, tli int32) ([]TimelineSwitch, error) {
	if tli <= 1 {
		return nil, nil
	}
	r, err := pglogrepl.TimelineHistory(ctx, c.pg, tli)
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	return parseHistory(string(r.Content))
}

// parseHistory parses a timeline history file: lines of "timeline TAB LSN TAB reason"; empty lines
// and what follows a # are comments.
//
// Source: readTimeLineHistory in PostgreSQL's src/backend/access/transam/timeline.c.
func parseHistory(text string) ([]TimelineSwitch, error) {
	var switches []TimelineSwitch
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 2 {
			return nil, historyFault("a line has less than two fields")
		}
		tli, err := strconv.ParseInt(fields[0], 10, 32)
		if err != nil {
			return nil, historyFault("a timeline is not a number")
		}
		lsn, err := offsets.ParseLSN(fields[1])
		if err != nil {
			return nil, historyFault("a switch point is not an LSN")
		}
		switches = append(switches, TimelineSwitch{
			Timeline: int32(tli),
			Switch:   lsn,
			Reason:   strings.Join(fields[2:], " "),
		})
	}
	return switches, nil
}

func historyFault(text string) error {
	return fault.New(fault.ProtocolError, "the timeline history cannot be read: "+text)
}

// versionNumber turns the parameter server_version, such as "18.4 (Debian 18.4-1)" or "19devel",
// into a number.
func versionNumber(s string) int {
	end := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end >= 0 {
		s = s[:end]
	}
	major, rest, _ := strings.Cut(s, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(minor)
	if err != nil {
		n = 0
	}
	return m*10000 + n
}
