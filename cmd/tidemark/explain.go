package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
)

func newExplainCmd() *cobra.Command {
	var chosen selection
	var asJSON, schemas bool
	cmd := &cobra.Command{
		Use:   "explain -c FILE [CONNECTOR.json ...]",
		Short: "Show what would be captured: tables, topics, keys, before-images, schemas",
		Long: "Show for each captured table its topic, the columns of its key and why those, its " +
			"replica\nidentity and what is known of an old row under it, and with --schemas the Avro " +
			"schemas.\nOnly PostgreSQL's catalogs are read; nothing is changed anywhere.",
		Example: "  tidemark explain -c tidemark.yaml\n" +
			"  tidemark explain -c tidemark.yaml --connector shop --schemas",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, connectors, err := chosen.load(cmd, args)
			if err != nil {
				return err
			}
			return explain(cmd.Context(), cmd.OutOrStdout(), connectors, asJSON, schemas)
		},
	}
	chosen.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&schemas, "schemas", false, "with the Avro schemas of keys and values")
	return cmd
}

// explanation is what `explain` says of a connector. Field names of its JSON are for programs.
type explanation struct {
	Connector         string           `json:"connector"`
	Database          string           `json:"database"`
	Publication       string           `json:"publication"`
	PublicationExists bool             `json:"publication_exists"`
	ViaRoot           bool             `json:"publish_via_partition_root"`
	Tables            []explainedTable `json:"tables"`
}

// explainedTable is one captured table. BeforeImage is what the event says of the old row, by
// operation; empty when the server would refuse the statement.
type explainedTable struct {
	Table       string            `json:"table"`
	Topic       string            `json:"topic,omitempty"`
	Key         []string          `json:"key_columns"`
	KeyReason   string            `json:"key_reason"`
	Identity    string            `json:"replica_identity"`
	BeforeImage map[string]string `json:"before_image"`
	Published   bool              `json:"published"`
	RowFilter   string            `json:"row_filter,omitempty"`
	Columns     []string          `json:"columns"`
	LeftOut     []string          `json:"columns_left_out,omitempty"`
	Masked      map[string]string `json:"columns_masked,omitempty"` // by the key that says so
	KeySchema   json.RawMessage   `json:"key_schema,omitempty"`
	ValueSchema json.RawMessage   `json:"value_schema,omitempty"`
	Problem     string            `json:"problem,omitempty"`
}

// explainTimeout bounds the questions to one database.
const explainTimeout = 2 * time.Minute

func explain(
	ctx context.Context, w io.Writer, connectors []*config.Connector, asJSON, schemas bool,
) error {
	all := []*explanation{}
	var worst error
	for i, c := range connectors {
		e, err := explainConnector(ctx, c, schemas)
		if e == nil {
			return err
		}
		if err != nil && (worst == nil || exitStatus(err) > exitStatus(worst)) {
			worst = err
		}
		all = append(all, e)
		if asJSON {
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := e.print(w); err != nil {
			return err
		}
	}
	if asJSON {
		if err := printJSON(w, struct {
			Connectors []*explanation `json:"connectors"`
		}{all}); err != nil {
			return err
		}
	}
	if worst != nil {
		return silentError{exitStatus(worst)} // the output names the problem
	}
	return nil
}

// explainer asks one database about one connector's tables.
type explainer struct {
	cfg     *config.Connector
	catalog *catalog.Catalog
	encoder *envelope.Encoder
	schemas bool
	// someLeafFull says of a root, by OID, that a partition of it has identity FULL.
	someLeafFull map[uint32]bool
}

// explainConnector returns nil with an error when the database cannot be asked, and an explanation
// with the first error when a table cannot be captured as it is.
func explainConnector(
	ctx context.Context, cfg *config.Connector, schemas bool,
) (*explanation, error) {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	conn, err := pgdial.Connect(ctx, cfg.Database, "tidemark explain")
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	x := explainer{
		cfg: cfg, catalog: catalog.New(conn).Limit(cfg.Database.QueryTimeout), schemas: schemas, someLeafFull: map[uint32]bool{},
	}
	types := schema.Options{DecimalMode: cfg.DecimalMode, MoneyDigits: cfg.MoneyDigits}
	if types.MoneyDigits < 0 {
		if types.MoneyDigits, err = x.catalog.MoneyDigits(ctx); err != nil {
			return nil, pgdial.Wrap(err)
		}
	}
	x.encoder = envelope.New(connector.EncoderOptions(cfg, cfg.Database.Name, version, 0, types))
	defer x.encoder.Close()

	e := &explanation{
		Connector: cfg.Name, Database: cfg.Database.Name, Publication: cfg.Publication,
		ViaRoot: cfg.PublishViaRoot, Tables: []explainedTable{},
	}
	err = conn.QueryRow(ctx, "SELECT pubviaroot FROM pg_publication WHERE pubname = $1",
		cfg.Publication).Scan(&e.ViaRoot)
	switch {
	case err == nil:
		e.PublicationExists = true
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, pgdial.Wrap(err)
	}
	return x.tables(ctx, e)
}

func (x *explainer) tables(ctx context.Context, e *explanation) (*explanation, error) {
	rows, err := x.catalog.Candidates(ctx)
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	for _, row := range rows {
		if row.Partition && row.Identity == schema.IdentityFull {
			x.someLeafFull[row.RootOID] = true
		}
	}
	var first error
	for _, row := range rows {
		announced := !row.Partition
		if !e.ViaRoot {
			announced = !row.Partitioned
		}
		if !announced || !x.cfg.Tables.Captured(row.Schema, row.Name) {
			continue
		}
		t, err := x.table(ctx, row, e)
		switch {
		case err == nil:
		case t == nil:
			return nil, err
		case first == nil:
			first = err
		}
		e.Tables = append(e.Tables, *t)
	}
	return e, first
}

// table returns nil with an error when the catalog could not be asked, and a table with a Problem
// and the error when it cannot be captured as it is.
func (x *explainer) table(
	ctx context.Context, row catalog.TableRow, e *explanation,
) (*explainedTable, error) {
	t := &explainedTable{
		Table: row.Schema + "." + row.Name, Identity: identityText(row), Published: true,
		Key: []string{}, Columns: []string{},
	}
	publication := ""
	if e.PublicationExists {
		publication = e.Publication
	}
	found, err := x.catalog.RelationOf(ctx, row.OID, publication)
	if errors.Is(err, catalog.ErrNoRelation) || publication == "" {
		t.Published = false
		found, err = x.catalog.RelationOf(ctx, row.OID, "")
	}
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	t.RowFilter = found.RowFilter
	for _, c := range found.Relation.Columns {
		t.Columns = append(t.Columns, c.Name)
	}
	info, err := x.catalog.Table(ctx, found.Relation)
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	t.BeforeImage = beforeImage(row, info, x.someLeafFull[row.OID])
	compiled, err := x.encoder.Compile(found.Relation, info)
	if err != nil {
		t.Problem, t.KeyReason = err.Error(), "none: the table cannot be captured as it is"
		return t, err
	}
	t.Topic, t.KeyReason = compiled.Topic, compiled.KeyReason
	t.Key = append(t.Key, compiled.KeyColumns...)
	t.setColumns(compiled)
	if x.schemas {
		t.ValueSchema = json.RawMessage(compiled.ValueSchema)
		if compiled.HasKey() {
			t.KeySchema = json.RawMessage(compiled.KeySchema)
		}
	}
	if row.Unlogged {
		err = fault.New(fault.ReplicaIdentityUnusable, "the table is UNLOGGED: no change of it is in "+
			"the log").With("", "a logged table", "ALTER TABLE ... SET LOGGED, or exclude it")
	} else if !row.Partitioned && !row.UsableIdentity() {
		err = fault.New(fault.ReplicaIdentityUnusable, "once published, the server refuses UPDATE and "+
			"DELETE on it").With(t.Identity, "a primary key, or another usable identity", "")
	}
	if err != nil {
		t.Problem = err.Error()
	}
	return t, err
}

// setColumns tells columns that are sent as they are from those that are not.
func (t *explainedTable) setColumns(compiled *envelope.Table) {
	t.LeftOut = compiled.Out
	t.Columns = slices.DeleteFunc(t.Columns, func(c string) bool {
		return slices.Contains(compiled.Out, c)
	})
	for _, m := range compiled.Masked {
		if t.Masked == nil {
			t.Masked = map[string]string{}
		}
		t.Masked[m.Name] = m.Key
	}
}

func identityText(row catalog.TableRow) string {
	switch row.Identity {
	case schema.IdentityFull:
		return "FULL"
	case schema.IdentityNothing:
		return "NOTHING"
	case schema.IdentityIndex:
		return "USING INDEX (" + strings.Join(row.IdentityColumns, ", ") + ")"
	case schema.IdentityDefault:
	}
	if len(row.IdentityColumns) == 0 {
		return "DEFAULT, without a usable primary key"
	}
	return "DEFAULT (" + strings.Join(row.IdentityColumns, ", ") + ")"
}

// beforeImage is the contract's table "What is known of the old row" for one table. A partitioned
// table's rows do not say which partition they come from: its old rows are FULL only if all are.
func beforeImage(row catalog.TableRow, info schema.TableInfo, someFull bool) map[string]string {
	switch {
	case row.Identity == schema.IdentityFull && (!info.IsRoot || info.LeavesFull):
		return map[string]string{"update": "FULL", "key_change": "FULL", "delete": "FULL"}
	case row.Partitioned && someFull:
		return map[string]string{"update": "ABSENT or KEY", "key_change": "KEY", "delete": "KEY"}
	case !row.Partitioned && !row.UsableIdentity():
		return map[string]string{}
	}
	return map[string]string{"update": "ABSENT", "key_change": "KEY", "delete": "KEY"}
}

func (e *explanation) print(w io.Writer) error {
	var b bytes.Buffer
	state := "made at the first start"
	if e.PublicationExists {
		state = "exists"
	}
	fmt.Fprintf(&b, "connector %s: database %s, publication %s (%s)\n",
		e.Connector, e.Database, e.Publication, state)
	if len(e.Tables) == 0 {
		fmt.Fprintln(&b, "\nno table is captured")
	}
	for i := range e.Tables {
		e.Tables[i].print(&b, e.PublicationExists)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (t *explainedTable) print(b *bytes.Buffer, publicationExists bool) {
	line := func(name, text string) { fmt.Fprintf(b, "  %-14s %s\n", name, text) }
	fmt.Fprintf(b, "\n%s\n", t.Table)
	if t.Problem != "" {
		line("problem", t.Problem)
	}
	if t.Topic != "" {
		line("topic", t.Topic)
	}
	key := t.KeyReason
	if len(t.Key) > 0 {
		key = strings.Join(t.Key, ", ") + ": " + t.KeyReason
	}
	line("key", key)
	line("identity", t.Identity)
	if len(t.BeforeImage) > 0 {
		line("before-image", fmt.Sprintf("update %s, change of key %s, delete %s",
			t.BeforeImage["update"], t.BeforeImage["key_change"], t.BeforeImage["delete"]))
	}
	line("columns", strings.Join(t.Columns, ", "))
	if len(t.LeftOut) > 0 {
		line("left out", strings.Join(t.LeftOut, ", "))
	}
	for _, c := range slices.Sorted(maps.Keys(t.Masked)) {
		line("masked", c+": "+t.Masked[c])
	}
	if publicationExists && !t.Published {
		line("publication", "not in it yet")
	}
	if t.RowFilter != "" {
		line("row filter", t.RowFilter)
	}
	for _, s := range []struct {
		name string
		text json.RawMessage
	}{{"key schema", t.KeySchema}, {"value schema", t.ValueSchema}} {
		var indented bytes.Buffer
		if len(s.text) > 0 && json.Indent(&indented, s.text, "    ", "  ") == nil {
			fmt.Fprintf(b, "  %s\n    %s\n", s.name, indented.String())
		}
	}
}
