package workload

import (
	"fmt"
	"strings"
)

// kind is a way to change the database, and how often it is drawn.
type kind struct {
	name   string
	weight int
	make   func(x *writer) transaction
}

func kinds() []kind {
	return []kind{
		{"insert", 120, func(x *writer) transaction { return one(x.insert(x.table())) }},
		{"update", 240, func(x *writer) transaction { return one(x.update(x.table())) }},
		{"twice", 60, twice},
		{"delete", 70, func(x *writer) transaction { return one(x.remove(x.table())) }},
		{"key change", 40, func(x *writer) transaction { return one(x.rekey(x.table())) }},
		{"insert again", 40, again},
		{"many rows", 90, many},
		{"several tables", 60, several},
		{"copy", 30, copyIn},
		{"savepoint", 30, savepoint},
		{"abort", 25, abort},
		{"prepared", 20, prepared},
		{"body", 60, body},
		{"truncate", 2, truncate},
		{"column", 2, column},
		{"noise", 40, noise},
	}
}

func one(statement string) transaction {
	return transaction{sql: "BEGIN;" + statement + "COMMIT"}
}

// table draws a table by weight.
func (x *writer) table() *table {
	total := 0
	for _, t := range x.w.tables {
		total += t.weight
	}
	n := x.random.IntN(total)
	for _, t := range x.w.tables {
		if n -= t.weight; n < 0 {
			return t
		}
	}
	panic("workload: the weights do not add up")
}

// row draws a row's number; of a table without a constraint one of this writer's own.
func (x *writer) row(t *table) int64 {
	n := x.random.Int64N(x.w.o.Keys)
	if t.perWriter {
		writers := int64(x.w.o.Writers)
		n = n/writers*writers + int64(x.number)
	}
	return n
}

func (x *writer) insert(t *table) string { return x.insertRow(t, x.row(t)) }

func (x *writer) insertRow(t *table, n int64) string {
	columns, values := x.values()
	if t.toasted {
		columns, values = columns+", body", values+", "+x.body()
	}
	return fmt.Sprintf("INSERT INTO %s (%s, %s) SELECT %s, %s WHERE NOT EXISTS "+
		"(SELECT FROM %[1]s WHERE %[6]s);", t.ID(), strings.Join(t.Key, ", "), columns, t.insert(n),
		values, t.key(n))
}

// values are columns that every table has, and literals for them.
func (x *writer) values() (columns, values string) {
	r := x.random
	price := fmt.Sprintf("%d.%02d", r.IntN(100000)-500, r.IntN(100))
	tags := "NULL"
	if r.IntN(3) > 0 {
		tags = fmt.Sprintf("'{%d,NULL,%d}'", r.IntN(100), r.IntN(100))
	}
	return "note, qty, price, paid, placed, day, tags, free, doc, raw, uid", fmt.Sprintf(
		`'n%d "é" \ x', %d, %s, %t, timestamptz '2026-01-01 00:00:00Z' + %d * interval '1 ms', `+
			`date '2000-02-28' + %d, %s, %d.%d, '{"a": [%d, "ü"]}', '\x%08x', `+
			`'a0eebc99-9c0b-4ef8-bb6d-6bb9bd38%04x'`,
		r.IntN(1000), r.IntN(50), price, r.IntN(2) == 0, r.IntN(1<<30), r.IntN(10000), tags,
		r.IntN(1000), r.IntN(1000), r.IntN(10), r.Uint32(), r.IntN(1<<16))
}

// body is a text that is stored out of line.
func (x *writer) body() string {
	return fmt.Sprintf("repeat('%d-', 1200)", x.random.IntN(1_000_000))
}

// set is what an update changes; never the body, so that it stays out of the log.
func (x *writer) set() string {
	switch x.random.IntN(4) {
	case 0:
		return fmt.Sprintf("qty = qty + %d", 1+x.random.IntN(5))
	case 1:
		return "price = NULL, paid = NOT paid, note = NULL"
	case 2:
		return "note = 'same', price = 0.10"
	}
	columns, values := x.values()
	return fmt.Sprintf("(%s) = ROW (%s)", columns, values)
}

func (x *writer) update(t *table) string { return x.updateRow(t, x.row(t)) }

func (x *writer) updateRow(t *table, n int64) string {
	return fmt.Sprintf("UPDATE %s SET %s WHERE %s;", t.ID(), x.set(), t.key(n))
}

func (x *writer) remove(t *table) string {
	return fmt.Sprintf("DELETE FROM %s WHERE %s;", t.ID(), t.key(x.row(t)))
}

// rekey gives a row another key; one of the same partition in the partitioned table, where the
// server would delete and insert otherwise.
func (x *writer) rekey(t *table) string {
	from, to := x.row(t), x.row(t)
	if t.Name == "parted" {
		to += from%buckets - to%buckets
	}
	if from == to || to < 0 {
		return x.updateRow(t, from)
	}
	return fmt.Sprintf("UPDATE %s SET (%s) = ROW (%s) WHERE %s AND NOT EXISTS "+
		"(SELECT FROM %[1]s WHERE %[5]s);", t.ID(), strings.Join(t.Key, ", "), t.insert(to), t.key(from),
		t.key(to))
}

// twice changes one row several times in one transaction.
func twice(x *writer) transaction {
	t := x.table()
	n := x.row(t)
	return transaction{sql: "BEGIN;" + x.insertRow(t, n) + x.updateRow(t, n) + x.updateRow(t, n) +
		"COMMIT"}
}

// again deletes a row and inserts it anew, in one transaction.
func again(x *writer) transaction {
	t := x.table()
	n := x.row(t)
	return transaction{sql: fmt.Sprintf("BEGIN; DELETE FROM %s WHERE %s; %s COMMIT", t.ID(), t.key(n),
		x.insertRow(t, n))}
}

// many changes a range of rows with one statement.
func many(x *writer) transaction {
	t := x.w.tables[0]
	from := x.random.Int64N(x.w.o.Keys)
	n := int64(1 + x.random.IntN(x.w.o.PerTransaction))
	where := fmt.Sprintf("WHERE id >= %d AND id < %d;", from, from+n)
	switch x.random.IntN(8) {
	case 0:
		return one("DELETE FROM " + t.ID() + " " + where)
	case 1, 2, 3:
		columns, values := x.values()
		return one(fmt.Sprintf("INSERT INTO %s (id, %s) SELECT g, %s FROM generate_series(%d, %d) g "+
			"WHERE NOT EXISTS (SELECT FROM %[1]s o WHERE o.id = g);", t.ID(), columns, values, from,
			min(from+n, x.w.o.Keys)-1))
	}
	return one("UPDATE " + t.ID() + " SET " + x.set() + " " + where)
}

func several(x *writer) transaction {
	var b strings.Builder
	b.WriteString("BEGIN;")
	for range 2 + x.random.IntN(5) {
		switch t := x.table(); x.random.IntN(4) {
		case 0:
			b.WriteString(x.insert(t))
		case 1:
			b.WriteString(x.remove(t))
		default:
			b.WriteString(x.update(t))
		}
	}
	return transaction{sql: b.String() + "COMMIT"}
}

// copyIn writes new rows with COPY: many rows of one WAL record, all with its LSN.
func copyIn(x *writer) transaction {
	var b strings.Builder
	for range 1 + x.random.IntN(2*x.w.o.PerTransaction) {
		x.serial++
		id := int64(x.w.run)<<48 | int64(x.number)<<36 | x.serial
		fmt.Fprintf(&b, "%d\t1\tcopied\t%d\t%d.50\t{1,2}\n", id, x.random.IntN(9), x.random.IntN(999))
	}
	return transaction{copied: b.String()}
}

func savepoint(x *writer) transaction {
	return transaction{sql: "BEGIN;" + x.update(x.table()) + "SAVEPOINT a;" + x.insert(x.table()) +
		x.remove(x.table()) + "ROLLBACK TO a;" + x.update(x.table()) + "SAVEPOINT b;" +
		x.update(x.table()) + "RELEASE b; COMMIT"}
}

func abort(x *writer) transaction {
	return transaction{
		sql:   "BEGIN;" + x.insert(x.table()) + x.update(x.table()) + x.remove(x.table()) + "ROLLBACK",
		abort: true,
	}
}

// prepared commits, or rolls back, in two phases, with another transaction of the same session in
// between. Its changes count when it is committed.
func prepared(x *writer) transaction {
	x.serial++
	gid := fmt.Sprintf("%s%d", x.gid(), x.serial)
	end := "COMMIT"
	if x.random.IntN(3) == 0 {
		end = "ROLLBACK"
	}
	return transaction{
		noise: end == "ROLLBACK",
		sql:   "BEGIN;" + x.update(x.table()) + x.insert(x.table()) + "PREPARE TRANSACTION '" + gid + "'",
		after: []string{
			"INSERT INTO tm.noise (text) VALUES ('between')", end + " PREPARED '" + gid + "'",
		},
	}
}

// body writes the value that is stored out of line.
func body(x *writer) transaction {
	for {
		if t := x.table(); t.toasted {
			return one(fmt.Sprintf("UPDATE %s SET body = %s WHERE %s;", t.ID(), x.body(),
				t.key(x.row(t))))
		}
	}
}

func truncate(*writer) transaction { return one("TRUNCATE w.truncated;") }

// column adds a column, or drops the one that this writer added before. A name is never used
// twice.
func column(x *writer) transaction {
	if len(x.added) > 0 && x.random.IntN(2) == 0 {
		name := x.added[0]
		x.added = x.added[1:]
		return one("ALTER TABLE w.evolving DROP COLUMN IF EXISTS " + name + ";")
	}
	x.serial++
	name := fmt.Sprintf("extra_%d_%d_%d", x.w.run, x.number, x.serial)
	x.added = append(x.added, name)
	return one(fmt.Sprintf("ALTER TABLE w.evolving ADD COLUMN %s text; UPDATE w.evolving SET %[1]s = "+
		"'%s' WHERE id = %d;", name, "new", x.random.Int64N(x.w.o.Keys)))
}

func noise(x *writer) transaction {
	tx := one(fmt.Sprintf("INSERT INTO tm.noise (text) SELECT 'noise' FROM generate_series(1, %d); "+
		"DELETE FROM tm.noise WHERE id %% 2 = 0;", 1+x.random.IntN(5)))
	tx.noise = true
	return tx
}
