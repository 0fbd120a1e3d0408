package pgdial

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestSettingsArePinnedOnBothKindsOfConnection(t *testing.T) {
	t.Parallel()
	pg := testenv.SharedPostgres(t, "18")
	name := testenv.NewDatabase(t, pg)
	for _, setting := range []string{
		"DateStyle = 'German'", "TimeZone = 'America/New_York'", "statement_timeout = '1s'",
		"lc_monetary = 'C'", "search_path = 'elsewhere'",
	} {
		if err := pg.Exec(timeout(t), "postgres", "ALTER DATABASE "+name+" SET "+setting); err != nil {
			t.Fatal(err)
		}
	}
	db := databaseOf(pg, name)
	sql, err := Connect(timeout(t), db, "tidemark: one")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sql.Close(timeout(t)) }()
	replication, err := ConnectReplication(timeout(t), db, "tidemark: two")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = replication.Close(timeout(t)) }()

	show := func(setting string) (onSQL, onReplication string) {
		t.Helper()
		if err := sql.QueryRow(timeout(t), "SHOW "+setting).Scan(&onSQL); err != nil {
			t.Fatal(err)
		}
		results, err := replication.Exec(timeout(t), "SHOW "+setting).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return onSQL, string(results[0].Rows[0][0])
	}
	for _, s := range schema.PinnedSettings() {
		a, b := show(s.Name)
		// DateStyle shows the order of days and months too, which ISO output does not use.
		a, b = strings.TrimSuffix(a, ", MDY"), strings.TrimSuffix(b, ", MDY")
		if s.Name == "DateStyle" {
			a, b = strings.Split(a, ",")[0], strings.Split(b, ",")[0]
		}
		if a != s.Value || b != s.Value {
			t.Errorf("%s is %q and %q, want %q", s.Name, a, b, s.Value)
		}
	}
	for setting, want := range map[string]string{
		"statement_timeout": "0", "lock_timeout": "0", "row_security": "off",
		"idle_in_transaction_session_timeout": "0", "application_name": "tidemark: one",
	} {
		if got, _ := show(setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	if _, got := show("application_name"); got != "tidemark: two" {
		t.Errorf("application_name of the replication connection is %q", got)
	}
}

func TestAConnectionLivesThroughAChangeOfTheTable(t *testing.T) {
	t.Parallel()
	pg := testenv.SharedPostgres(t, "18")
	conn, err := Connect(timeout(t), databaseOf(pg, testenv.NewDatabase(t, pg)), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(timeout(t)) }()
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(timeout(t), sql); err != nil {
			t.Fatal(err)
		}
	}
	columns := func() int {
		t.Helper()
		rows, err := conn.Query(timeout(t), "SELECT * FROM public.t WHERE id = $1", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		n := len(rows.FieldDescriptions())
		for rows.Next() {
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		return n
	}
	exec("CREATE TABLE public.t (id int)")
	for want := 1; want <= 3; want++ {
		if got := columns(); got != want {
			t.Errorf("%d columns, want %d", got, want)
		}
		exec(fmt.Sprintf("ALTER TABLE public.t ADD c%d int", want))
	}
}

func TestInitialStatementsRunOnOrdinaryConnections(t *testing.T) {
	t.Parallel()
	pg := testenv.SharedPostgres(t, "18")
	db := databaseOf(pg, testenv.NewDatabase(t, pg))
	db.InitialStatements = []string{"SET work_mem = '7MB'", "SET my.own = 'x'"}
	conn, err := Connect(timeout(t), db, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(timeout(t)) }()
	var got string
	if err := conn.QueryRow(timeout(t), "SELECT current_setting('work_mem')"+
		" || current_setting('my.own')").Scan(&got); err != nil || got != "7MBx" {
		t.Errorf("%q, %v", got, err)
	}
	db.InitialStatements = []string{"SELECT 1", "SET no_such_setting = 1"}
	_, err = Connect(timeout(t), db, "test")
	if err == nil || !strings.Contains(err.Error(), "statement 2 of database.initial.statements") {
		t.Errorf("error %v", err)
	}
	replication, err := ConnectReplication(timeout(t), db, "test")
	if err != nil {
		t.Fatal(err)
	}
	_ = replication.Close(timeout(t))
}

func TestHostsAreTriedInTurn(t *testing.T) {
	t.Parallel()
	pg := testenv.SharedPostgres(t, "18")
	db := databaseOf(pg, testenv.NewDatabase(t, pg))
	db.Host = "127.0.0.2," + pg.Host // loopback as well, but nobody listens there
	conn, err := Connect(timeout(t), db, "test")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(timeout(t))
}

func TestTLSFollowsSSLMode(t *testing.T) {
	t.Parallel()
	secure, err := testenv.StartPostgres(timeout(t), testenv.PostgresOptions{TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := secure.Close(); err != nil {
			t.Error(err)
		}
	})
	other, err := testenv.NewCertificates(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plain := testenv.SharedPostgres(t, "18")
	tests := []struct {
		pg         *testenv.Postgres
		mode, root string
		host       string
		tls        bool
		code       fault.Code
	}{
		{secure, "disable", "", "", false, fault.AuthenticationFailed}, // pg_hba.conf has hostssl only
		{secure, "allow", "", "", true, ""},
		{secure, "prefer", "", "", true, ""},
		{secure, "", "", "", true, ""},
		{secure, "require", "", "", true, ""},
		{secure, "require", secure.CAFile, "", true, ""},
		{secure, "require", other.CAFile, "", false, fault.AuthenticationFailed}, // as verify-ca
		{secure, "verify-ca", secure.CAFile, "127.0.0.2", true, ""},
		{secure, "verify-ca", other.CAFile, "", false, fault.AuthenticationFailed},
		{secure, "verify-full", secure.CAFile, "", true, ""},
		{secure, "verify-full", secure.CAFile, "127.0.0.2", false, fault.AuthenticationFailed},
		{plain, "disable", "", "", false, ""},
		{plain, "allow", "", "", false, ""},
		{plain, "prefer", "", "", false, ""},
		{plain, "require", "", "", false, fault.AuthenticationFailed},
		{plain, "verify-full", secure.CAFile, "", false, fault.AuthenticationFailed},
		{plain, "verify-full", "no/such/file", "", false, fault.ConfigInvalid},
		{plain, "sometimes", "", "", false, fault.ConfigInvalid},
	}
	for i, tt := range tests {
		db := databaseOf(tt.pg, "postgres")
		db.SSLMode, db.SSLRootCert = tt.mode, tt.root
		if tt.host != "" {
			// The certificate is not for this address; a forwarder takes it to the server.
			db.Host, db.Port = forward(t, tt.host, tt.pg)
		}
		what := fmt.Sprintf("case %d: %s with root %q", i, tt.mode, filepath.Base(tt.root))
		conn, err := Connect(timeout(t), db, "test")
		if err != nil {
			if tt.code == "" || fault.CodeOf(err) != tt.code {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		var encrypted bool
		if err := conn.QueryRow(timeout(t), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").
			Scan(&encrypted); err != nil || encrypted != tt.tls || tt.code != "" {
			t.Errorf("%s: connected with TLS %t, %v", what, encrypted, err)
		}
		_ = conn.Close(timeout(t))
	}
}

// forward listens on another loopback address and passes connections on to pg.
func forward(t *testing.T, host string, pg *testenv.Postgres) (string, uint16) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", net.JoinHostPort(pg.Host, strconv.Itoa(pg.Port)))
			if err != nil {
				_ = in.Close()
				continue
			}
			go pass(in, out)
			go pass(out, in)
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return host, uint16(n)
}

func pass(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_ = from.Close()
	_ = to.Close()
}

func TestAPasswordWithEveryQuoteIsNotMisread(t *testing.T) {
	t.Parallel()
	pg := testenv.SharedPostgres(t, "18")
	name := testenv.NewDatabase(t, pg)
	role := `we'ird \role"` + name
	if err := pg.Exec(timeout(t), name, `CREATE ROLE "`+strings.ReplaceAll(role, `"`, `""`)+
		`" LOGIN PASSWORD 'p'' \ w=1"'`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pg.Exec(timeout(t), name, `DROP ROLE "`+strings.ReplaceAll(role, `"`, `""`)+`"`)
	})
	db := databaseOf(pg, name)
	db.User, db.Password = role, config.NewSecret(`p' \ w=1"`)
	conn, err := Connect(timeout(t), db, "test")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(timeout(t))

	_, err = ConnectReplication(timeout(t), db, "test")
	if fault.CodeOf(err) != fault.NotAReplicationRole {
		t.Errorf("a role without REPLICATION: %v", err)
	}
	db.Password = config.NewSecret("wrong")
	_, err = Connect(timeout(t), db, "test")
	if fault.CodeOf(err) != fault.AuthenticationFailed {
		t.Errorf("a wrong password: %v", err)
	}
	db.Name = "no_such_database"
	db.User, db.Password = pg.User, config.NewSecret(pg.Password)
	_, err = Connect(timeout(t), db, "test")
	if fault.CodeOf(err) != fault.ConfigInvalid {
		t.Errorf("no such database: %v", err)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	_, err = Connect(timeout(t), config.Database{
		Host: "127.0.0.1", Port: uint16(addr.Port), User: "u", Name: "d",
		Password: config.NewSecret("hidden"), SSLMode: "prefer",
	}, "test")
	if fault.CodeOf(err) != fault.PostgresUnreachable || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v", err)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(fmt.Sprintf("%+v %#v", e, e), "hidden") {
			t.Errorf("the password is in %T", e)
		}
	}
}
