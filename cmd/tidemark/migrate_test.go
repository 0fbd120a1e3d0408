package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestTakesOverDebeziumsPosition begins where a Debezium connector ended: its slot, its
// publication, and its record in Connect's offsets topic.
func TestTakesOverDebeziumsPosition(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	slot := "s_" + s.db
	s.exec("CREATE PUBLICATION dbz_publication FOR TABLE t",
		"SELECT pg_create_logical_replication_slot('"+slot+"', 'pgoutput')")
	conn, err := s.pg.Connect(ctx, s.db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var lsn int64
	if err := conn.QueryRow(ctx, "SELECT (confirmed_flush_lsn - '0/0')::bigint "+
		"FROM pg_replication_slots WHERE slot_name = $1", slot).Scan(&lsn); err != nil {
		t.Fatal(err)
	}
	s.exec("INSERT INTO t VALUES (2, 'after Debezium')")

	client, err := kgo.NewClient(kgo.SeedBrokers(s.broker.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	compact := "compact"
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 25, 1,
		map[string]*string{"cleanup.policy": &compact}, "connect-offsets"); err != nil {
		t.Fatal(err)
	}
	err = client.ProduceSync(ctx, &kgo.Record{
		Topic: "connect-offsets", Key: []byte(`["shop",{"server":"shop"}]`),
		// lsn is a row's of the next transaction: nothing can start there.
		Value: fmt.Appendf(nil, `{"lsn_proc":%d,"messageType":"INSERT","lsn_commit":%d,"lsn":%d,`+
			`"txId":752,"ts_usec":1764460800123456}`, lsn+64, lsn, lsn+64),
	}).FirstErr()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), "connectors:\n",
		"  offset.storage.topic: connect-offsets\nconnectors:\n", 1)
	text += "    publication.name: dbz_publication\n"
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	p := s.start()
	p.until("the change after Debezium's end", func() bool {
		return len(s.events()) == 1
	})
	if got := s.events()[0]; got != "c NOT_APPLICABLE 0" {
		t.Errorf("the first event is %s, and no snapshot was due", got)
	}
	if status := p.stop(); status != 0 {
		t.Errorf("exit %d\n%s", status, p.stderr.String())
	}
	// From now on the record names the cluster.
	if _, out, _ := command(t, "offsets", "show", "-c", s.file, "--json"); !strings.Contains(out,
		`"system_id":"7`) {
		t.Errorf("the record: %s", out)
	}
}
