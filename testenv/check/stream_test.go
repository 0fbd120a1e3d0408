package check

import "testing"

func TestAGoodTopicPasses(t *testing.T) {
	u := update("1", 3, 30)
	d, gone := remove("1", 40), tombstone("1", 40)
	c := feed(t, plain(), read("1", 2, 10), insert("2", 1, 20), u, d, gone,
		// The connector was killed, and goes on from 30.
		copyOf(u), copyOf(d), copyOf(gone), insert("1", 5, 50), update("2", 2, 60))
	c.finish()
	wantOnly(t, c.report)
	if r := c.report; r.Changes != 5 || r.Repeats != 3 || r.Snapshot != 1 || r.Records != 10 {
		t.Errorf("counted %d changes, %d repeats, %d snapshot rows, %d records", r.Changes, r.Repeats,
			r.Snapshot, r.Records)
	}
}

func TestOrderFails(t *testing.T) {
	for name, events := range map[string][]*Event{
		"a repeat that leaves an event out": {
			insert("1", 1, 10), insert("2", 1, 20), insert("3", 1, 30),
			insert("1", 1, 10), insert("3", 1, 30),
		},
		"something new in a repeat": {
			insert("1", 1, 10), insert("2", 1, 20), insert("1", 1, 10), insert("3", 1, 30),
		},
		"a tombstone without its delete": {insert("1", 1, 10), tombstone("1", 20)},
		"a delete without its tombstone": {insert("1", 1, 10), remove("1", 20), insert("2", 1, 30)},
		"a snapshot's row that the stream brings again": {
			read("1", 2, 10), update("1", 2, 20),
		},
		"a snapshot's row behind the stream": {insert("1", 1, 10), read("1", 2, 20)},
	} {
		t.Run(name, func(t *testing.T) { wantOnly(t, feed(t, plain(), events...).report, Order) })
	}
}

func TestTwoEventsThatChangedPlacesFail(t *testing.T) {
	c := feed(t, plain(), insert("1", 1, 10), update("1", 3, 30), update("1", 2, 20))
	wantOnly(t, c.report, Order, Hole)
}

func TestARepeatWithAnotherContentFails(t *testing.T) {
	other := insert("1", 1, 10)
	other.content = 99
	wantOnly(t, feed(t, plain(), insert("1", 1, 10), other).report, Order)
}

func TestHoleFails(t *testing.T) {
	for name, events := range map[string][]*Event{
		"a change that is not there":          {insert("1", 1, 10), update("1", 3, 30)},
		"a change behind the snapshot":        {read("1", 2, 10), update("1", 4, 30)},
		"a delete that is not there":          {insert("1", 1, 10), insert("1", 3, 30)},
		"a delete of a row that is not there": {remove("1", 20), tombstone("1", 20)},
		"a row that the snapshot left out":    {update("1", 2, 10)},
		"an insert of a row that is there":    {read("1", 2, 10), insert("1", 3, 20)},
		"the end in the middle of a repeat": {
			insert("1", 1, 10), insert("2", 1, 20), insert("1", 1, 10),
		},
		"the end between a delete and tombstone":  {insert("1", 1, 10), remove("1", 20)},
		"a truncate that one partition never got": {truncate(0, 10), truncate(1, 10), truncate(1, 20)},
	} {
		t.Run(name, func(t *testing.T) {
			c := feed(t, plain(), events...)
			c.finish()
			if c.report.Counts[Hole] == 0 {
				t.Error("not noticed")
			}
		})
	}
}

func TestAKeyGoesOnBehindATruncate(t *testing.T) {
	c := feed(t, plain(), insert("1", 1, 10), truncate(0, 20), insert("1", 2, 30))
	c.finish()
	wantOnly(t, c.report)
}

func TestAPartitionWithoutItsMarkerIsNamed(t *testing.T) {
	c := newChecker(&Options{Marker: "m", MarkerColumn: "note"})
	c.topic(topicName, plain(), 2)
	e := insert("1", 1, 10)
	e.After["note"] = text("m")
	e.Partition = PartitionOf(e.KeyBody, 2)
	c.add(e)
	other := map[int32]string{0: topicName + "[1]", 1: topicName + "[0]"}[e.Partition]
	if missing := c.unmarked(); len(missing) != 1 || missing[0] != other {
		t.Errorf("missing are %v, want %s", missing, other)
	}
}

func TestExactlyOnceFailsOnARepeat(t *testing.T) {
	c := newChecker(&Options{ExactlyOnce: true})
	c.topic(topicName, plain(), 1)
	for range 2 {
		e := insert("1", 1, 10)
		e.Headers = map[string]string{
			"tidemark.op": "c", "tidemark.history": "0", "tidemark.commit_lsn": "10",
			"tidemark.event_index": "0", "tidemark.before_image": "NOT_APPLICABLE",
		}
		c.add(e)
	}
	wantOnly(t, c.report, Once)
}

func TestAnOldRowThatIsNotThePreviousOneFails(t *testing.T) {
	good := feed(t, full(), insert("1", 1, 10), fullUpdate("1", 2, 20), fullUpdate("1", 3, 30))
	wantOnly(t, good.report)
	bad := fullUpdate("1", 3, 30)
	bad.Before["note"] = nil
	wantOnly(t, feed(t, full(), insert("1", 1, 10), fullUpdate("1", 2, 20), bad).report, Before)
}

func TestTheHalvesOfAChangeOfKeyBelongTogether(t *testing.T) {
	halves := func() (gone, tomb, made *Event) {
		gone, made = event("d", "1", 0, 20, "FULL"), event("c", "2", 1, 20, "FULL")
		gone.Before, made.Before = row("1", 1), row("1", 1)
		gone.Headers = map[string]string{"tidemark.key.new": "x"}
		made.Headers = map[string]string{"tidemark.key.old": "x"}
		return gone, tombstone("1", 20), made
	}
	gone, tomb, made := halves()
	c := feed(t, full(), insert("1", 1, 10), gone, tomb, made)
	c.finish()
	wantOnly(t, c.report)

	_, _, made = halves()
	c = feed(t, full(), insert("1", 1, 10), made)
	c.finish()
	wantOnly(t, c.report, Hole)

	gone, tomb, made = halves()
	made.Before = row("1", 7)
	c = feed(t, full(), insert("1", 1, 10), gone, tomb, made)
	c.finish()
	wantOnly(t, c.report, Before)
}

func TestATableWithoutAKeyIsFollowedByItsRows(t *testing.T) {
	update := keyless(fullUpdate("1", 2, 20))
	moved := keyless(event("u", "2", 1, 30, "FULL"))
	moved.Before = row("1", 2)
	c := feed(t, bare(), keyless(insert("1", 1, 10)), update, moved)
	c.finish()
	wantOnly(t, c.report)

	lost := keyless(fullUpdate("1", 3, 30))
	wantOnly(t, feed(t, bare(), keyless(insert("1", 1, 10)), lost).report, Hole, Before)

	elsewhere := keyless(insert("2", 1, 20))
	elsewhere.Partition = 1
	c = feed(t, bare(), keyless(insert("1", 1, 10)), elsewhere)
	c.finish()
	wantOnly(t, c.report, Partition)
}
