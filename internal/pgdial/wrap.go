package pgdial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Wrap gives err the code that decides what happens next. It returns nil for nil, a fault and
// context.Canceled as they are, and a fault for everything else:
//
//	postgres_unreachable    none, broken, timed out, or ended by the server (08, 57P)
//	authentication_failed   class 28; a certificate that one side does not accept; TLS refused
//	not_a_replication_role  42501 about replication
//	privilege_missing       42501 otherwise
//	slots_exhausted         53300, 53400: no slot, walsender or connection is left
//	slot_in_use             55006
//	config_invalid          3D000: no such database
//	internal                anything else
//
// PostgreSQL's message is kept, its DETAIL only where it cannot hold a row's value. The cause stays
// reachable for errors.As as a *pgconn.PgError without the parts that were left out.
func Wrap(err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return fromServer(err, pg)
	}
	return fromTransport(err)
}

// fromServer makes the fault of an error that the server sent.
func fromServer(err error, pg *pgconn.PgError) error {
	clean := Clean(pg)
	c := classify(pg)
	f := fault.Wrap(c.code, c.text, cause{text: preface(err, pg) + clean.Error(), err: clean})
	return f.With(clean.Detail, "", firstOf(c.fix, clean.Hint))
}

type class struct {
	code      fault.Code
	text, fix string
}

// classify is the one table from SQLSTATE to fault code.
func classify(pg *pgconn.PgError) class {
	switch {
	case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "57P"):
		return class{code: fault.PostgresUnreachable, text: "PostgreSQL ended or refused the session"}
	case strings.HasPrefix(pg.Code, "40"):
		return class{
			code: fault.PostgresUnreachable,
			text: "PostgreSQL rolled back what it was asked, as a standby does on a conflict with recovery",
		}
	case strings.HasPrefix(pg.Code, "28"):
		return class{
			fault.AuthenticationFailed, "PostgreSQL refuses the login",
			"look at database.user, database.password and the server's pg_hba.conf",
		}
	case pg.Code == "42501" && aboutReplication(pg.Message):
		return class{
			fault.NotAReplicationRole, "the role may not use replication",
			"run as superuser: ALTER ROLE <database.user> REPLICATION",
		}
	case pg.Code == "42501":
		return class{fault.PrivilegeMissing, "PostgreSQL refuses for want of a right", ""}
	case pg.Code == "53300", pg.Code == "53400":
		return class{
			fault.SlotsExhausted, "PostgreSQL has no slot, walsender or connection left",
			"raise max_replication_slots, max_wal_senders or max_connections, or drop unused slots",
		}
	case pg.Code == "55006":
		return class{code: fault.SlotInUse, text: "another session uses the slot"}
	case pg.Code == "3D000":
		return class{fault.ConfigInvalid, "the database does not exist", "look at database.dbname"}
	}
	return class{code: fault.Internal, text: "PostgreSQL reports an error"}
}

// aboutReplication tells a missing REPLICATION attribute from another missing right. Servers up to
// 15 say "replication role to start walsender" and "to use replication slots", later ones "to start
// WAL sender"; translations keep these words.
func aboutReplication(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "replication") || strings.Contains(m, "walsender") ||
		strings.Contains(m, "wal sender")
}

// Clean returns a copy of pg without what may hold a row's value: query texts and context always,
// DETAIL outside of the classes whose DETAIL speaks of objects and resources, and the message of a
// data exception (class 22), which quotes the value it is about.
func Clean(pg *pgconn.PgError) *pgconn.PgError {
	c := *pg
	c.Where, c.InternalQuery = "", ""
	if len(c.Code) < 2 {
		c.Detail = ""
		return &c
	}
	switch c.Code[:2] {
	case "08", "28", "53", "55", "57", "58":
	case "42":
		if c.Code != "42501" {
			c.Detail = ""
		}
	case "22":
		c.Message, c.Detail, c.Hint = "a value is not of the form or range that is needed", "", ""
	default:
		c.Detail = ""
	}
	return &c
}

// preface keeps what our own code put in front of the server's error, such as which initial
// statement failed, and for a failed connection which host was asked.
func preface(err error, pg *pgconn.PgError) string {
	text := oneLine(err.Error())
	before, _, found := strings.Cut(text, oneLine(pg.Error()))
	if !found {
		return ""
	}
	return before
}

// fromTransport makes the fault of an error that arose on our side of the connection.
func fromTransport(err error) error {
	c := class{code: fault.Internal, text: "a request to PostgreSQL failed"}
	switch {
	case refusesTLS(err):
		c = class{
			fault.AuthenticationFailed, "TLS with PostgreSQL cannot be agreed",
			"look at database.sslmode and database.sslrootcert",
		}
	case isTransport(err):
		c = class{code: fault.PostgresUnreachable, text: "PostgreSQL cannot be reached"}
	}
	var inner error
	for _, known := range []error{
		context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
	} {
		if errors.Is(err, known) {
			inner = known
		}
	}
	if c.code == fault.Internal {
		inner = err
	}
	return fault.Wrap(c.code, c.text, cause{text: oneLine(err.Error()), err: inner}).
		With("", "", c.fix)
}

// refusesTLS reports whether the two sides do not agree on TLS: trying again cannot mend that.
func refusesTLS(err error) bool {
	var (
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		alert     tls.AlertError
	)
	return errors.As(err, &verify) || errors.As(err, &authority) || errors.As(err, &host) ||
		errors.As(err, &invalid) || errors.As(err, &alert) ||
		// Last: with sslmode prefer the attempt without TLS comes after it, and its error counts.
		strings.HasSuffix(strings.TrimSpace(err.Error()), "server refused TLS connection")
}

// isTransport reports whether err is of the network or the connection, not of a statement.
func isTransport(err error) bool {
	var (
		network net.Error
		op      *net.OpError
		connect *pgconn.ConnectError
	)
	return errors.As(err, &network) || errors.As(err, &op) || errors.As(err, &connect) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) ||
		strings.Contains(err.Error(), "conn closed")
}

// cause is an error's text on one line, and the part of the chain that holds no secret: a
// pgconn.ConnectError carries the whole configuration with the password.
type cause struct {
	text string
	err  error
}

func (c cause) Error() string { return c.text }
func (c cause) Unwrap() error { return c.err }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
