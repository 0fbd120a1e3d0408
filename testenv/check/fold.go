package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// folded is what a consumer holds of a key.
type folded struct {
	applied Pair
	any     bool
	row     Row // nil: there is none
	// unknown are columns of which nobody told the value: the insert half of a change of key that
	// did not carry it.
	unknown map[string]bool
	// partition is where its events are: a truncate is in each.
	partition int32
}

// fold applies a record as a consumer does: an event whose pair is not greater than the key's last
// one is dropped, a value that is unavailable stays what it was, unless it was left out.
func (c *checker) fold(t *topic, e *Event) {
	if e.Tombstone {
		return // its delete was there before it
	}
	if e.Op == "t" {
		for _, k := range t.keys {
			if f := &k.folded; f.any && f.row != nil && f.applied.Less(e.Pair) &&
				f.partition == e.Partition {
				f.row, f.applied = nil, e.Pair
			}
		}
		return
	}
	for _, half := range halves(t.table, e) {
		if k := c.keyOf(t, half); k != nil {
			k.folded.apply(half)
		}
	}
}

// apply takes an event of the key.
func (f *folded) apply(e *Event) {
	if f.any && !f.applied.Less(e.Pair) {
		return
	}
	f.any, f.applied, f.partition = true, e.Pair, e.Partition
	if e.Op == "d" {
		f.row, f.unknown = nil, nil
		return
	}
	old, unknown := f.row, f.unknown
	f.row, f.unknown = make(Row, len(e.After)), nil
	for name, text := range e.After {
		f.row[name] = text
	}
	for _, s := range e.States {
		switch {
		case s.Image == "BEFORE":
		case s.State == "UNREPRESENTABLE":
			f.row[s.Column] = s.Text
		case s.State == "UNAVAILABLE" && s.Text == nil && old != nil && !unknown[s.Column]:
			f.row[s.Column] = old[s.Column]
		case s.State == "UNAVAILABLE":
			if f.unknown == nil {
				f.unknown = map[string]bool{}
			}
			f.unknown[s.Column] = true
		}
	}
}

// compare holds the folded topics against the tables.
func (c *checker) compare(ctx context.Context, conn *pgx.Conn) error {
	const pinned = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'; SET bytea_output = 'hex'; " +
		"SET extra_float_digits = 1; SET IntervalStyle = 'iso_8601'"
	if _, err := conn.PgConn().Exec(ctx, pinned).ReadAll(); err != nil {
		return err
	}
	for name, t := range c.topics {
		if err := c.compareTable(ctx, conn, name, t); err != nil {
			return fmt.Errorf("compare %s: %w", t.table.ID(), err)
		}
	}
	return nil
}

func (c *checker) compareTable(ctx context.Context, conn *pgx.Conn, name string, t *topic) error {
	columns, err := columnsOf(ctx, conn, t.table)
	if err != nil {
		return err
	}
	have := map[string]*folded{}
	for _, k := range t.keys {
		if k.folded.row == nil {
			continue
		}
		id, ok := k.folded.row.join(t.table.Key)
		if !ok {
			c.report.fail(Fold, "%s: a row without its key columns", name)
			continue
		}
		if have[id] != nil {
			c.report.fail(Fold, "%s: two keys of the topic have the row %s", name, id)
		}
		have[id] = &k.folded
	}
	// The simple protocol gives what the types' output functions print.
	list := make([]string, len(columns))
	for i, column := range columns {
		list[i] = pgx.Identifier{column}.Sanitize()
	}
	result := conn.PgConn().Exec(ctx, "SELECT "+strings.Join(list, ", ")+" FROM "+
		pgx.Identifier{t.table.Schema, t.table.Name}.Sanitize())
	for result.NextResult() {
		for rows := result.ResultReader(); rows.NextRow(); {
			row := make(Row, len(columns))
			for i, value := range rows.Values() {
				if value == nil {
					row[columns[i]] = nil
					continue
				}
				text := string(value)
				row[columns[i]] = &text
			}
			c.compareRow(name, t.table, row, have)
		}
	}
	if err := result.Close(); err != nil {
		return err
	}
	for id := range have {
		c.report.fail(Fold, "%s: row %s is in the topic and not in the table", name, id)
	}
	return nil
}

// compareRow holds a row of the table against the topic's, and takes that one out of have. A
// column that the topic's row does not have was added after its last change: it is null then.
func (c *checker) compareRow(name string, t *Table, row Row, have map[string]*folded) {
	id, _ := row.join(t.Key)
	f := have[id]
	delete(have, id)
	if f == nil {
		c.report.fail(Fold, "%s: row %s is in the table and not in the topic", name, id)
		return
	}
	for column, text := range row {
		if !f.unknown[column] && !same(text, f.row[column]) {
			c.report.fail(Fold, "%s: row %s differs in column %s, %d and %d characters", name, id,
				column, size(text), size(f.row[column]))
		}
	}
}

func size(text *string) int {
	if text == nil {
		return 0
	}
	return len(*text)
}

func columnsOf(ctx context.Context, conn *pgx.Conn, t *Table) ([]string, error) {
	rows, err := conn.Query(ctx, `SELECT a.attname FROM pg_attribute a
		JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped
		AND a.attgenerated = '' ORDER BY a.attnum`, t.Schema, t.Name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
