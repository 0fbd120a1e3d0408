package connector_test

import "testing"

// The main job: rows that were there, then each kind of change, on their way to the topic.
func TestSnapshotThenEveryOperation(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec("CREATE TABLE orders (id int PRIMARY KEY, note text)",
		"INSERT INTO orders VALUES (1, 'before')")
	run := r.start()
	r.streaming(run)
	r.exec("INSERT INTO orders VALUES (2, 'c')", "UPDATE orders SET note = 'u' WHERE id = 2",
		"UPDATE orders SET id = 3 WHERE id = 2", "DELETE FROM orders WHERE id = 3")
	events := r.read("shop.public.orders", 8)
	count := map[string]int{}
	for _, e := range events {
		count[e.op()+"/"+e.headers["tidemark.before_image"]]++
	}
	want := map[string]int{
		"r/NOT_APPLICABLE": 1, "c/NOT_APPLICABLE": 1, "u/ABSENT": 1, "c/KEY": 1,
		"d/KEY": 2, "tombstone/KEY": 2,
	}
	for k, n := range want {
		if count[k] != n {
			t.Errorf("%s: %d events, want %d (all: %v)", k, count[k], n, count)
		}
	}
	if err := run.stop(); err != nil {
		t.Errorf("an ordered stop returned %v", err)
	}
}
