package capture

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-cdc/tidemark/testenv"
)

var record = flag.Bool("record", false, "write TestCorpus's frames to decode's fuzz corpus")

// TestCorpus streams every kind of message that a real server sends, in all shapes of tuples. With
// -record its frames become the seed corpus of decode's FuzzDecode.
func TestCorpus(t *testing.T) {
	for _, version := range []string{"14", "18"} {
		t.Run(version, func(t *testing.T) {
			s := newSource(t, testenv.SharedPostgres(t, version), corpusSchema)
			_, point := s.slot()
			s.exec(corpusChanges...)
			r := read(t, s.start(point))
			kinds := map[byte]int{}
			for r.next() != "message corpus end false" {
			}
			for _, frame := range r.frames {
				kinds[frame[0]]++
			}
			for _, kind := range []byte("BCORYIUDTM") {
				if kinds[kind] == 0 {
					t.Errorf("no message of kind %c", kind)
				}
			}
			if *record {
				writeCorpus(t, "postgres-"+version, r.frames)
			}
		})
	}
}

const corpusSchema = `
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE usual (id int PRIMARY KEY, v text, m mood, p positive, a int[], b bytea);
CREATE TABLE whole (id int PRIMARY KEY, v text, big text);
ALTER TABLE whole REPLICA IDENTITY FULL, ALTER big SET STORAGE EXTERNAL;
CREATE TABLE by_index (id int PRIMARY KEY, code text NOT NULL UNIQUE, v text);
ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_code_key;
CREATE TABLE none ();
ALTER TABLE none REPLICA IDENTITY FULL;
CREATE TABLE root (id int, region text, v text, PRIMARY KEY (id, region))
	PARTITION BY LIST (region);
CREATE TABLE root_eu PARTITION OF root FOR VALUES IN ('eu');
CREATE TABLE root_us PARTITION OF root FOR VALUES IN ('us');
CREATE TABLE "Quoted ""Name" ("Col, umn" int PRIMARY KEY, "ümlaut" text);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES usual ON DELETE CASCADE);
CREATE PUBLICATION pub FOR ALL TABLES WITH (publish_via_partition_root = true)`

var corpusChanges = []string{
	`INSERT INTO usual VALUES (1, 'one', 'sad', 7, '{1,NULL,3}', '\xdeadbeef'),
		(2, '', NULL, NULL, '{}', ''), (3, NULL, 'glad', 1, NULL, NULL)`,
	"UPDATE usual SET v = 'changed' WHERE id = 1",
	"UPDATE usual SET id = 20 WHERE id = 2",
	"INSERT INTO child VALUES (1, 3), (2, 3)",
	"DELETE FROM usual WHERE id = 3",
	"INSERT INTO whole VALUES (1, 'one', repeat('x', 3000))",
	"UPDATE whole SET v = 'uno'",
	"DELETE FROM whole",
	"INSERT INTO by_index VALUES (1, 'a', 'x')",
	"UPDATE by_index SET id = 2",
	"UPDATE by_index SET code = 'b'",
	"DELETE FROM by_index",
	"INSERT INTO none DEFAULT VALUES",
	"INSERT INTO root VALUES (1, 'eu', 'x'), (2, 'us', 'y')",
	"UPDATE root SET region = 'us' WHERE id = 1",
	"DELETE FROM root WHERE id = 2",
	`INSERT INTO "Quoted ""Name" VALUES (1, 'ä€😀')`,
	"BEGIN; INSERT INTO child VALUES (3, NULL); SAVEPOINT s; INSERT INTO child VALUES (4, NULL);" +
		"ROLLBACK TO s; INSERT INTO child VALUES (5, NULL); COMMIT",
	"ALTER TABLE child ADD note varchar(10) DEFAULT 'd'",
	"INSERT INTO child VALUES (6, NULL, 'n')",
	"TRUNCATE usual CASCADE",
	"TRUNCATE whole RESTART IDENTITY",
	"BEGIN; SELECT pg_logical_emit_message(true, 'corpus', 'within'); COMMIT",
	"SELECT pg_replication_origin_create('node_' || current_database())",
	"SELECT pg_replication_origin_session_setup('node_' || current_database())",
	"BEGIN; SELECT pg_replication_origin_xact_setup('0/77', now());" +
		"INSERT INTO child VALUES (7); COMMIT",
	"SELECT pg_replication_origin_session_reset()",
	"SELECT pg_replication_origin_drop('node_' || current_database())",
	"SELECT pg_logical_emit_message(false, 'corpus', 'end')",
}

// writeCorpus writes frames as FuzzDecode wants them, each behind its length, in the form of Go's
// fuzz corpus.
func writeCorpus(t *testing.T, name string, frames [][]byte) {
	t.Helper()
	var data []byte
	for _, f := range frames {
		data = append(binary.BigEndian.AppendUint32(data, uint32(len(f))), f...)
	}
	dir := filepath.Join("..", "decode", "testdata", "fuzz", "FuzzDecode")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("go test fuzz v1\n[]byte(%+q)\n", string(data))
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
