package pgdial

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func server(code, message string) *pgconn.PgError {
	return &pgconn.PgError{Severity: "ERROR", Code: code, Message: message}
}

func TestEveryErrorHasItsCode(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errors.New("refused"))}
	tests := []struct {
		err  error
		want fault.Code
	}{
		{server("08006", "connection failure"), fault.PostgresUnreachable},
		{server("57P01", "terminating connection"), fault.PostgresUnreachable},
		{server("40001", "canceling statement due to conflict with recovery"), fault.PostgresUnreachable},
		{server("57P03", "the database system is starting up"), fault.PostgresUnreachable},
		{server("28000", "no pg_hba.conf entry for replication connection"), fault.AuthenticationFailed},
		{server("28P01", "password authentication failed"), fault.AuthenticationFailed},
		{
			server("42501", "must be superuser or replication role to start walsender"),
			fault.NotAReplicationRole,
		},
		{server("42501", "permission denied to start WAL sender"), fault.NotAReplicationRole},
		{server("42501", "permission denied to use replication slots"), fault.NotAReplicationRole},
		{server("42501", "permission denied for table t"), fault.PrivilegeMissing},
		{server("53300", "sorry, too many clients already"), fault.SlotsExhausted},
		{server("53400", "all replication slots are in use"), fault.SlotsExhausted},
		{server("55006", `replication slot "s" is active for PID 7`), fault.SlotInUse},
		{server("3D000", `database "d" does not exist`), fault.ConfigInvalid},
		{server("42601", "syntax error"), fault.Internal},
		{server("57014", "canceling statement due to user request"), fault.Internal},
		{fmt.Errorf("reading: %w", server("55006", "x")), fault.SlotInUse},
		{io.EOF, fault.PostgresUnreachable},
		{fmt.Errorf("x: %w", io.ErrUnexpectedEOF), fault.PostgresUnreachable},
		{refused, fault.PostgresUnreachable},
		{net.ErrClosed, fault.PostgresUnreachable},
		{os.ErrDeadlineExceeded, fault.PostgresUnreachable},
		{context.DeadlineExceeded, fault.PostgresUnreachable},
		{x509.UnknownAuthorityError{}, fault.AuthenticationFailed},
		{errors.New("server refused TLS connection"), fault.AuthenticationFailed},
		{pgx.ErrNoRows, fault.Internal},
	}
	for _, tt := range tests {
		got := Wrap(tt.err)
		if fault.CodeOf(got) != tt.want {
			t.Errorf("%v: %v, want %s", tt.err, got, tt.want)
		}
		if again := Wrap(got); !errors.Is(again, got) || again.Error() != got.Error() {
			t.Errorf("%v is wrapped twice", tt.err)
		}
	}
	if !errors.Is(Wrap(pgx.ErrNoRows), pgx.ErrNoRows) {
		t.Error("the cause of an internal error is gone")
	}
	if !errors.Is(Wrap(context.DeadlineExceeded), context.DeadlineExceeded) {
		t.Error("a timeout is no timeout any more")
	}
	for _, same := range []error{nil, context.Canceled, fault.New(fault.WALLevel, "x")} {
		if got := Wrap(same); !errors.Is(got, same) {
			t.Errorf("%v became %v", same, got)
		}
	}
}

func TestARowsValueIsInNoError(t *testing.T) {
	t.Parallel()
	for _, pg := range []*pgconn.PgError{
		{Code: "23505", Message: "duplicate key", Detail: "Key (id)=(4711) already exists."},
		{Code: "23514", Message: "violates check", Detail: "Failing row contains (4711)."},
		{Code: "22P02", Message: `invalid input syntax for type integer: "4711"`},
		{Code: "22003", Message: "value out of range", Where: "COPY t, line 1: 4711"},
		{Code: "42601", Message: "syntax error", InternalQuery: "SELECT 4711", Detail: "4711"},
		{Code: "XX000", Message: "oops", Detail: "4711"},
		{Code: "P", Message: "a code that is none", Detail: "4711"},
	} {
		got := Wrap(fmt.Errorf("COPY: %w", pg))
		var inner *pgconn.PgError
		if !errors.As(got, &inner) {
			t.Fatalf("%v does not hold the server's error", got)
		}
		if all := fmt.Sprintf("%v %+v", got, *inner); strings.Contains(all, "4711") {
			t.Errorf("%s: %s", pg.Code, all)
		}
	}
}

func TestDetailAndHintHelpWhereTheyMay(t *testing.T) {
	t.Parallel()
	pg := server("42501", "permission denied to start WAL sender")
	pg.Detail = "Only roles with the REPLICATION attribute may start a WAL sender process."
	want := "not_a_replication_role: the role may not use replication: " +
		"ERROR: permission denied to start WAL sender (SQLSTATE 42501) " +
		"(found Only roles with the REPLICATION attribute may start a WAL sender process.); " +
		"run as superuser: ALTER ROLE <database.user> REPLICATION"
	if got := Wrap(pg).Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
