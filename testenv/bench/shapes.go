package main

import (
	"context"
	"fmt"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// shape is a table, and transactions that wait in a slot.
type shape struct {
	name  string
	what  string // for the report
	table string // what stands between the parentheses of CREATE TABLE
	after string // statements once the table exists, %s is the table
	// insert makes rows %[2]s to %[3]s of table %[1]s.
	insert string
	// update, when set, is what waits instead of the inserts, which then come before the slot.
	update string
	perTx  int
	rows   int // for the full run
	quick  int // for the quick run; 0: left out
}

// ordinary is a row of 8 columns and about 140 bytes of text.
const ordinary = `id bigint PRIMARY KEY, customer int NOT NULL, status text, amount numeric(12,2),
	quantity int, created timestamptz, paid boolean, note text`

const ordinaryInsert = `INSERT INTO %[1]s SELECT i, i %% 100003, 'status-' || i %% 7,
	i %% 99991 / 100.0, i %% 50, '2026-01-01 00:00:00+00'::timestamptz + i * interval '1 s',
	i %% 3 = 0,
	'note of ' || md5(i::text) || ' and ' || i FROM generate_series(%[2]s, %[3]s) i`

const mixed = `id bigint PRIMARY KEY, c1 int, c2 int, c3 bigint, c4 bigint, c5 smallint, c6 boolean,
	c7 boolean, c8 real, c9 double precision, c10 double precision, c11 numeric(10,2),
	c12 numeric(20,6), c13 date, c14 date, c15 time, c16 timestamp, c17 timestamp, c18 timestamptz,
	c19 timestamptz, c20 uuid, c21 text, c22 text, c23 varchar(40), c24 char(8), c25 bytea, c26 json,
	c27 jsonb, c28 int[], c29 text`

const mixedInsert = `INSERT INTO %[1]s SELECT i, i, -i, i * 1000003::bigint, NULL, i %% 30000,
	i %% 2 = 0, NULL,
	i / 7.0, i / 3.0, i * 1e10, i %% 100000 / 100.0, i / 1000.0, '2026-01-01'::date + i %% 1000, NULL,
	'00:00'::time + i %% 86400 * interval '1 s', '2026-01-01'::timestamp + i * interval '1 s', NULL,
	'2026-01-01 00:00+00'::timestamptz + i * interval '1 ms', '2026-01-01 00:00+00'::timestamptz,
	md5(i::text)::uuid, 'text ' || i, md5(i::text), 'varchar ' || i, 'char',
	decode(md5(i::text), 'hex'), '{"a": 1}', jsonb_build_object('i', i, 's', 'x'),
	ARRAY[i, i + 1], NULL
	FROM generate_series(%[2]s, %[3]s) i`

const wide = `id bigint PRIMARY KEY, a text STORAGE PLAIN, b text STORAGE PLAIN,
	c text STORAGE PLAIN, d text STORAGE PLAIN`

const wideInsert = `INSERT INTO %[1]s SELECT i, repeat(md5(i::text), 15),
	repeat(md5((i+1)::text), 15),
	repeat(md5((i+2)::text), 15), repeat(md5((i+3)::text), 15) FROM generate_series(%[2]s, %[3]s) i`

var shapes = []shape{
	{
		name: "stream", what: "8 columns, 140 bytes, 1 000 rows a transaction",
		table: ordinary, insert: ordinaryInsert, perTx: 1000, rows: 1_000_000, quick: 250_000,
	},
	{
		name: "single", what: "the same, one row a transaction",
		table: ordinary, insert: ordinaryInsert, perTx: 1, rows: 300_000, quick: 60_000,
	},
	{
		name: "wide", what: "rows of 2 KB, 100 a transaction",
		table: wide, insert: wideInsert, perTx: 100, rows: 150_000,
	},
	{
		name: "fullrow", what: "updates under REPLICA IDENTITY FULL, 1 000 a transaction",
		table: ordinary, after: "ALTER TABLE %s REPLICA IDENTITY FULL",
		insert: ordinaryInsert, perTx: 1000, rows: 300_000,
		update: `UPDATE %[1]s SET quantity = quantity + 1, note = note || '.'
			WHERE id BETWEEN %[2]s AND %[3]s`,
	},
	{
		name: "mixed", what: "30 columns of mixed types, 1 000 rows a transaction",
		table: mixed, insert: mixedInsert, perTx: 1000, rows: 200_000,
	},
}

// shapeOf returns the shape of a name.
func shapeOf(name string) shape {
	for _, s := range shapes {
		if s.name == name {
			return s
		}
	}
	panic("bench: no shape " + name)
}

// fill runs sql, which takes a table and a range of rows, in transactions of perTx rows.
func fill(ctx context.Context, pg *testenv.Postgres, table, sql string, rows, perTx int) error {
	return pg.Exec(ctx, database, fmt.Sprintf(`DO $$ DECLARE first int; last int; BEGIN
		FOR n IN 0..%d LOOP first := n * %d + 1; last := first + %d - 1;
		%s; COMMIT; END LOOP; END $$`, rows/perTx-1, perTx, perTx,
		fmt.Sprintf(sql, table, "first", "last")))
}
