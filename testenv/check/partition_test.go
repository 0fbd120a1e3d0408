package check

import "testing"

// The hashes are those of Kafka's own test of Utils.murmur2.
func TestHashIsJavas(t *testing.T) {
	for text, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string":                       -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := hash([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestPartitionFails(t *testing.T) {
	wrong := insert("1", 1, 10)
	wrong.Partition = 1 - PartitionOf(wrong.KeyBody, 2)
	c := newChecker(&Options{})
	c.topic(topicName, plain(), 2)
	c.checkPartition(c.topics[topicName], wrong)
	wantOnly(t, c.report, Partition)

	c = feed(t, plain())
	c.checkPartition(c.topics[topicName], keyless(insert("1", 1, 10)))
	wantOnly(t, c.report, Partition)

	c = feed(t, bare())
	c.checkPartition(c.topics[topicName], insert("1", 1, 10))
	wantOnly(t, c.report, Partition)
}
