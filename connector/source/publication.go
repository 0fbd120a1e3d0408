package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// Publication reads the publication's fingerprint; nil without an error when it does not exist.
func (s *Source) Publication(ctx context.Context, name string) (*offsets.Fingerprint, error) {
	var f *offsets.Fingerprint
	err := s.with(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		// One snapshot for all of its catalogs: a change in between must not be seen by halves.
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{
			IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly,
		})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if f, err = readPublication(ctx, tx, name); err != nil || f == nil {
			return err
		}
		if f.Tables, err = readPublicationTables(ctx, tx, f.OID, s.version); err != nil {
			return err
		}
		f.Namespaces, err = readPublicationNamespaces(ctx, tx, f.OID, s.version)
		return err
	})
	if err != nil || f == nil {
		return nil, err
	}
	f.Normalize()
	return f, nil
}

func readPublication(ctx context.Context, tx pgx.Tx, name string) (*offsets.Fingerprint, error) {
	var xmin, text string
	f := &offsets.Fingerprint{Name: name}
	err := tx.QueryRow(ctx, `SELECT oid, xmin::text, to_jsonb(p)::text FROM pg_publication p
		WHERE pubname = $1`, name).Scan(&f.OID, &xmin, &text)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var row struct {
		AllTables bool   `json:"puballtables"`
		Insert    bool   `json:"pubinsert"`
		Update    bool   `json:"pubupdate"`
		Delete    bool   `json:"pubdelete"`
		Truncate  bool   `json:"pubtruncate"`
		Root      bool   `json:"pubviaroot"`
		Generated string `json:"pubgencols"` // 18
	}
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return nil, fmt.Errorf("pg_publication has a column of another type: %w", err)
	}
	f.XMin = xid(&xmin)
	f.AllTables, f.Root, f.Generated = row.AllTables, row.Root, row.Generated
	var operations []string
	for i, on := range []bool{row.Insert, row.Update, row.Delete, row.Truncate} {
		if on {
			operations = append(operations, []string{"insert", "update", "delete", "truncate"}[i])
		}
	}
	f.Operations = strings.Join(operations, ", ")
	return f, nil
}

func readPublicationTables(
	ctx context.Context, tx pgx.Tx, publication uint32, version int,
) ([]offsets.PublicationTable, error) {
	filter, columns := "''", "''"
	if version >= 150000 {
		filter = "coalesce(pg_get_expr(pr.prqual, pr.prrelid), '')"
		columns = "coalesce(pr.prattrs::text, '')"
	}
	rows, err := tx.Query(ctx, `SELECT pr.prrelid, quote_ident(n.nspname) || '.' || quote_ident(c.relname),
			pr.oid, pr.xmin::text, `+filter+`, `+columns+`
		FROM pg_publication_rel pr JOIN pg_class c ON c.oid = pr.prrelid
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE pr.prpubid = $1`, publication)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (t offsets.PublicationTable, err error) {
		var xmin string
		err = r.Scan(&t.Relid, &t.Name, &t.OID, &xmin, &t.Filter, &t.Columns)
		t.XMin = xid(&xmin)
		return t, err
	})
}

func readPublicationNamespaces(
	ctx context.Context, tx pgx.Tx, publication uint32, version int,
) ([]offsets.PublicationNamespace, error) {
	if version < 150000 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `SELECT pn.pnnspid, quote_ident(n.nspname), pn.oid, pn.xmin::text
		FROM pg_publication_namespace pn JOIN pg_namespace n ON n.oid = pn.pnnspid
		WHERE pn.pnpubid = $1`, publication)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (n offsets.PublicationNamespace, err error) {
		var xmin string
		err = r.Scan(&n.Nspid, &n.Name, &n.OID, &xmin)
		n.XMin = xid(&xmin)
		return n, err
	})
}

// Table names a table by schema and name, unquoted.
type Table struct{ Schema, Name string }

func (t Table) sql() string { return pgx.Identifier{t.Schema, t.Name}.Sanitize() }

// CreatePublication makes the publication. tables nil with all false makes an empty one.
func (s *Source) CreatePublication(
	ctx context.Context, name string, tables []Table, all, viaRoot bool,
) error {
	sql := "CREATE PUBLICATION " + pgx.Identifier{name}.Sanitize()
	switch {
	case all:
		sql += " FOR ALL TABLES"
	case len(tables) > 0:
		sql += " FOR TABLE " + list(tables)
	}
	sql += " WITH (publish_via_partition_root = " + strconv.FormatBool(viaRoot) + ")"
	return s.publicationDDL(ctx, name, sql)
}

// AddTables adds tables to the publication.
func (s *Source) AddTables(ctx context.Context, name string, tables []Table) error {
	return s.publicationDDL(ctx, name, AddTablesSQL(name, tables))
}

// AddTablesSQL is the statement behind AddTables, for an operator to paste.
func AddTablesSQL(name string, tables []Table) string {
	return "ALTER PUBLICATION " + pgx.Identifier{name}.Sanitize() + " ADD TABLE " + list(tables)
}

// ErrExists is in the chain of the error of a statement that came second: another session has just
// made the publication, or added the table.
var ErrExists = errors.New("another session did the same at the same time")

func (s *Source) publicationDDL(ctx context.Context, name, sql string) error {
	w, err := s.writable(ctx)
	if fault.Has(err, fault.ConfigInvalid) {
		return fault.Wrap(fault.PublicationMissing, "publication "+name+
			" cannot be made or changed on a standby", err).
			With("", "primary.hostname, or the publication made on the primary", "run there: "+sql)
	}
	if err != nil {
		return err
	}
	err = w.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
	if err == nil && w != s {
		return s.replayed(ctx, w)
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42710" || pg.Code == "23505") { // by name, or by its index
		return errors.Join(ErrExists, err)
	}
	readOnly := errors.As(err, &pg) && pg.Code == "25006" // default_transaction_read_only
	if readOnly || fault.Has(err, fault.PrivilegeMissing) {
		return fault.Wrap(fault.PrivilegeMissing, "publication "+name+" cannot be made or changed by "+
			"the connector's role", err).With("", "ownership of the tables, CREATE on the database, and a session that may write",
			"let their owner run: "+sql+"; and set publication.autocreate.mode: disabled")
	}
	return err
}

func list(tables []Table) string {
	parts := make([]string, len(tables))
	for i, t := range tables {
		parts[i] = t.sql()
	}
	return strings.Join(parts, ", ")
}

// QuoteIdent quotes one identifier for SQL.
func QuoteIdent(name string) string { return pgx.Identifier{name}.Sanitize() }

// QuoteTable quotes a table's qualified name for SQL.
func QuoteTable(schema, name string) string { return pgx.Identifier{schema, name}.Sanitize() }
