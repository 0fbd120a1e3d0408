package cases_test

// ddl is a statement of DDL, with what is done before and after it. {t} is the table's name.
type ddl struct {
	title, before, change, after string
}

const (
	plain       = `CREATE TABLE {t} (id int PRIMARY KEY, a text); INSERT INTO {t} VALUES (1, 'x')`
	amount      = `CREATE TABLE {t} (id int PRIMARY KEY, a numeric(10,2)); INSERT INTO {t} VALUES (1, 1)`
	partitioned = `CREATE TABLE {t} (id int, k int, PRIMARY KEY (id, k)) PARTITION BY RANGE (k);
		CREATE TABLE {t}_1 PARTITION OF {t} FOR VALUES FROM (0) TO (10);
		CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (10) TO (20);
		INSERT INTO {t} VALUES (1, 1), (2, 11)`
)

// ddls are run one after another under one connector, each on tables of its own. The publication
// has all tables and publishes by root.
var ddls = []ddl{
	{"Add a column", plain, `ALTER TABLE {t} ADD b int`, `INSERT INTO {t} VALUES (2, 'y', 5)`},
	{
		"Add a column with a default, NOT NULL", plain, `ALTER TABLE {t} ADD b int NOT NULL DEFAULT 7`,
		`INSERT INTO {t} VALUES (2, 'y', 5); UPDATE {t} SET a = 'z' WHERE id = 1`,
	},
	{"Drop a column", plain, `ALTER TABLE {t} DROP a`, `INSERT INTO {t} VALUES (2)`},
	{"Rename a column", plain, `ALTER TABLE {t} RENAME a TO b`, `INSERT INTO {t} VALUES (2, 'y')`},
	{
		"Another type, the same Avro type", plain, `ALTER TABLE {t} ALTER a TYPE varchar(20)`,
		`INSERT INTO {t} VALUES (2, 'y')`,
	},
	{
		"Widen an integer", `CREATE TABLE {t} (id int PRIMARY KEY, a int); INSERT INTO {t} VALUES (1, 1)`,
		`ALTER TABLE {t} ALTER a TYPE bigint`, `INSERT INTO {t} VALUES (2, 5000000000)`,
	},
	{
		"Another Avro type", plain, `ALTER TABLE {t} ALTER a TYPE int USING 0`,
		`INSERT INTO {t} VALUES (2, 5)`,
	},
	{
		"Another precision and scale", amount, `ALTER TABLE {t} ALTER a TYPE numeric(12,4)`,
		`INSERT INTO {t} VALUES (2, 1.0005)`,
	},
	{
		"timestamp to timestamptz", `CREATE TABLE {t} (id int PRIMARY KEY, a timestamp)`,
		`INSERT INTO {t} VALUES (1, '2024-01-01'); ALTER TABLE {t} ALTER a TYPE timestamptz`,
		`INSERT INTO {t} VALUES (2, '2024-01-01 00:00+00')`,
	},
	{
		"Drop a column, and add it again with another type", plain,
		`ALTER TABLE {t} DROP a; INSERT INTO {t} VALUES (2); ALTER TABLE {t} ADD a int`,
		`INSERT INTO {t} VALUES (3, 5)`,
	},
	{
		"Change a default", plain, `ALTER TABLE {t} ALTER a SET DEFAULT 'd'`,
		`INSERT INTO {t} (id) VALUES (2)`,
	},
	{
		"Set and drop NOT NULL", plain, `ALTER TABLE {t} ALTER a SET NOT NULL`,
		`INSERT INTO {t} VALUES (2, 'y'); ALTER TABLE {t} ALTER a DROP NOT NULL;
		INSERT INTO {t} VALUES (3, NULL)`,
	},
	{
		"Add a stored generated column (not published)", plain,
		`ALTER TABLE {t} ADD g text GENERATED ALWAYS AS (a || '!') STORED`,
		`INSERT INTO {t} VALUES (2, 'y')`,
	},
	{
		"Add a virtual generated column", plain,
		`ALTER TABLE {t} ADD g text GENERATED ALWAYS AS (a || '!') VIRTUAL`,
		`INSERT INTO {t} VALUES (2, 'y')`,
	},
	{"Rename a table", plain, `ALTER TABLE {t} RENAME TO {t}_new`, `INSERT INTO {t}_new VALUES (2, 'y')`},
	{
		"Move a table to another schema", plain, `ALTER TABLE {t} SET SCHEMA other`,
		`INSERT INTO other.{t} VALUES (2, 'y')`,
	},
	{
		"Drop a table and make it again, with other columns", plain,
		`DROP TABLE {t}; CREATE TABLE {t} (id int PRIMARY KEY, b int)`, `INSERT INTO {t} VALUES (1, 5)`,
	},
	{
		"Swap two tables by renaming them in one transaction",
		plain + `; CREATE TABLE {t}_new (id int PRIMARY KEY, a text, b int)`,
		`BEGIN; INSERT INTO {t} VALUES (2, 'old'); ALTER TABLE {t} RENAME TO {t}_old;
		ALTER TABLE {t}_new RENAME TO {t}; INSERT INTO {t} VALUES (2, 'new', 5); COMMIT`,
		`INSERT INTO {t}_old VALUES (3, 'z')`,
	},
	{"TRUNCATE", plain, `TRUNCATE {t}`, `INSERT INTO {t} VALUES (2, 'y')`},
	{
		"TRUNCATE of several tables, with CASCADE", plain +
			`; CREATE TABLE {t}_b (id int PRIMARY KEY); CREATE TABLE {t}_c (id int PRIMARY KEY REFERENCES {t});
			INSERT INTO {t}_b VALUES (1); INSERT INTO {t}_c VALUES (1)`,
		`TRUNCATE {t}, {t}_b CASCADE`, ``,
	},
	{
		"A partition that is made later", partitioned,
		`CREATE TABLE {t}_3 PARTITION OF {t} FOR VALUES FROM (20) TO (30)`, `INSERT INTO {t} VALUES (3, 21)`,
	},
	{
		"ATTACH a table with rows", partitioned + `; CREATE TABLE {t}_3 (id int, k int, PRIMARY KEY (id, k));
		INSERT INTO {t}_3 VALUES (3, 21)`,
		`ALTER TABLE {t} ATTACH PARTITION {t}_3 FOR VALUES FROM (20) TO (30)`,
		`INSERT INTO {t} VALUES (4, 22)`,
	},
	{"DETACH a partition", partitioned, `ALTER TABLE {t} DETACH PARTITION {t}_2`, `INSERT INTO {t}_2 VALUES (3, 12)`},
	{"A row moves to another partition", partitioned, `UPDATE {t} SET k = 12 WHERE id = 1`, ``},
	{"TRUNCATE of one partition", partitioned, `TRUNCATE {t}_1`, `INSERT INTO {t} VALUES (3, 2)`},
	{"TRUNCATE of a partitioned table", partitioned, `TRUNCATE {t}`, `INSERT INTO {t} VALUES (3, 2)`},
	{
		"Make an extension's type again", plain + `; CREATE EXTENSION IF NOT EXISTS hstore;
		ALTER TABLE {t} ADD h hstore; INSERT INTO {t} VALUES (2, 'y', 'k=>1')`,
		`DROP EXTENSION hstore CASCADE; CREATE EXTENSION hstore; ALTER TABLE {t} ADD h hstore`,
		`INSERT INTO {t} VALUES (3, 'z', 'k=>2')`,
	},
	{
		"Add and rename a label of an enum", `CREATE TYPE {t}_e AS ENUM ('a');
		CREATE TABLE {t} (id int PRIMARY KEY, e {t}_e); INSERT INTO {t} VALUES (1, 'a')`,
		`ALTER TYPE {t}_e ADD VALUE 'b'`, `INSERT INTO {t} VALUES (2, 'b');
		ALTER TYPE {t}_e RENAME VALUE 'a' TO 'aa'; UPDATE {t} SET e = e WHERE id = 1`,
	},
	{
		"Add an attribute to a composite type", `CREATE TYPE {t}_c AS (s text);
		CREATE TABLE {t} (id int PRIMARY KEY, c {t}_c); INSERT INTO {t} VALUES (1, ROW('s'))`,
		`ALTER TYPE {t}_c ADD ATTRIBUTE zip int`, `INSERT INTO {t} VALUES (2, ROW('t', 5))`,
	},
	{
		"REPLICA IDENTITY FULL, and back", plain, `ALTER TABLE {t} REPLICA IDENTITY FULL`,
		`UPDATE {t} SET a = 'y'; ALTER TABLE {t} REPLICA IDENTITY DEFAULT; UPDATE {t} SET a = 'z'`,
	},
	{
		"REPLICA IDENTITY USING INDEX of another column",
		`CREATE TABLE {t} (id int PRIMARY KEY, u int NOT NULL UNIQUE); INSERT INTO {t} VALUES (1, 11)`,
		`ALTER TABLE {t} REPLICA IDENTITY USING INDEX {t}_u_key`, `UPDATE {t} SET id = 5; DELETE FROM {t}`,
	},
	{
		"Another primary key", plain, `ALTER TABLE {t} DROP CONSTRAINT {t}_pkey,
		ADD CONSTRAINT {t}_pkey PRIMARY KEY (id, a)`, `INSERT INTO {t} VALUES (2, 'y')`,
	},
	{
		"Widen the primary key's type", plain, `ALTER TABLE {t} ALTER id TYPE bigint`,
		`INSERT INTO {t} VALUES (2, 'y')`,
	},
	{
		"Drop the primary key", plain, `ALTER TABLE {t} DROP CONSTRAINT {t}_pkey`,
		`INSERT INTO {t} VALUES (2, 'y')`,
	},
}

// stops are changes after which rows may be missing: a connector of its own for each, whose
// publication is made by hand as before says.
var stops = []ddl{
	{
		"Change the publication's row filter", `CREATE TABLE t (id int PRIMARY KEY, a text);
		CREATE PUBLICATION p FOR TABLE t WHERE (id > 0)`,
		`ALTER PUBLICATION p SET TABLE t WHERE (id > 10)`, ``,
	},
	{
		"Change the publication's column list", `CREATE TABLE t (id int PRIMARY KEY, a text);
		CREATE PUBLICATION p FOR TABLE t`, `ALTER PUBLICATION p SET TABLE t (id)`, ``,
	},
	{
		"Switch publish_via_partition_root", `CREATE TABLE t (id int PRIMARY KEY);
		CREATE PUBLICATION p FOR TABLE t WITH (publish_via_partition_root = true)`,
		`ALTER PUBLICATION p SET (publish_via_partition_root = false)`, ``,
	},
	{
		"Publish generated columns", `CREATE TABLE t (id int PRIMARY KEY,
		g int GENERATED ALWAYS AS (id + 1) STORED); CREATE PUBLICATION p FOR TABLE t`,
		`ALTER PUBLICATION p SET (publish_generated_columns = stored)`, ``,
	},
	{
		"Take a table out of the publication and put it back", `CREATE TABLE t (id int PRIMARY KEY);
		CREATE PUBLICATION p FOR TABLE t`,
		`ALTER PUBLICATION p DROP TABLE t; ALTER PUBLICATION p ADD TABLE t`, ``,
	},
}
