package deliver

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestF26AMissingTopicIsCreatedAsConfigured(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	o := options(c)
	o.Creation = config.TopicCreation{
		Partitions: 3, Replication: 1, Configs: map[string]string{"retention.ms": "1234567"},
	}
	p := producer(t, o, "made")
	info := c.TopicInfo("made")
	if info == nil || p.Partitions("made") != 3 || p.Compacted("made") {
		t.Fatalf("topic %+v, %d partitions", info, p.Partitions("made"))
	}
	if got := info.Configs["retention.ms"]; got == nil || *got != "1234567" {
		t.Fatalf("configs %v", info.Configs)
	}
}

// The client remembers that it asked for a topic in vain: whoever made it must not wait until it
// forgets, here for a minute, by default for five seconds.
func TestATopicIsThereAsSoonAsItIsMade(t *testing.T) {
	t.Parallel()
	o := options(cluster(t))
	o.Creation.Partitions, o.Creation.Replication = 2, 1
	o.extra = []kgo.Opt{kgo.MetadataMinAge(time.Minute)}
	p := producer(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, p.EnsureTopic(ctx, "new", true))
	if n := p.Partitions("new"); n != 2 {
		t.Errorf("%d partitions, wanted 2", n)
	}
}

func TestATopicThatExistsIsNeverAltered(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	must(t, c.CreateTopic("there", 2, map[string]string{"retention.ms": "99"}))
	o := options(c)
	o.Creation = config.TopicCreation{
		Partitions: 7, Replication: 1, Configs: map[string]string{"retention.ms": "1"},
	}
	p := producer(t, o, "there", "there")
	got, n := c.TopicInfo("there").Configs["retention.ms"], p.Partitions("there")
	if *got != "99" || n != 2 {
		t.Fatalf("retention %s, partitions %d", *got, n)
	}
}

func TestACompactedTopicTakesOnlyKeys(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	must(t, c.CreateTopic("t", 1, map[string]string{"cleanup.policy": "compact,delete"}))
	p := producer(t, options(c), "t")
	if !p.Compacted("t") {
		t.Fatal("the topic is compacted")
	}
	wantCode(t, p.EnsureTopic(t.Context(), "t", false), fault.TopicCompactedNoKey)
	m := newMade(t)
	truncate := m.record("t", "", "truncate")
	truncate.Key, truncate.HashKey, truncate.Route, truncate.Op = nil, nil, envelope.RouteEach, 't'
	row := m.record("t", "k", "sent only when all of the event can be")
	wantCode(t, p.Send(t.Context(), []envelope.Record{row, truncate}, nil), fault.TruncateOnCompact)
	row = m.record("t", "", "row")
	row.Key, row.HashKey = nil, nil
	wantCode(t, p.Send(t.Context(), []envelope.Record{row}, nil), fault.TopicCompactedNoKey)
	must(t, p.Flush(t.Context()))
	if got := read(t, c, "t"); len(got) != 0 {
		t.Fatalf("the topic holds %v", got)
	}
	m.allReleased()
}

func TestF25ARecordThatIsTooLargeIsNotSent(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	must(t, c.CreateTopic("small", 1, map[string]string{"max.message.bytes": "2000"}))
	must(t, c.CreateTopic("large", 1, map[string]string{"max.message.bytes": "900000"}))
	o := options(c)
	o.Producer.MaxRequestBytes = 5000
	p := producer(t, o, "small", "large")
	m := newMade(t)
	value := strings.Repeat("v", 6000)
	for _, test := range []struct {
		topic, raise string
		fits         int
	}{
		{"small", "max.message.bytes of topic small", 1700},
		{"large", "producer.override.max.request.size", 4700},
	} {
		must(t, p.Send(t.Context(), []envelope.Record{
			m.record(test.topic, "key-of-a-row", value[:test.fits]),
		}, nil))
		err := p.Send(t.Context(), []envelope.Record{m.record(test.topic, "key-of-a-row", value)}, nil)
		wantCode(t, err, fault.RecordTooLarge)
		for _, part := range []string{test.raise, "topic " + test.topic, "key hash " + keyOfARow} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
		if strings.Contains(err.Error(), "key-of-a-row") {
			t.Errorf("%q says the key", err)
		}
	}
	must(t, p.Flush(t.Context()))
	if len(read(t, c, "small")[0]) != 1 || len(read(t, c, "large")[0]) != 1 {
		t.Error("the records that fit are not there")
	}
	m.allReleased()
}

const keyOfARow = "550deec2" // murmur2, as hexadecimal

// Batches stay below the topic's limit when many small records wait for one request.
func TestBatchesStayBelowTheTopicsLimit(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	must(t, c.CreateTopic("t", 1, map[string]string{"max.message.bytes": "1500"}))
	open := gate(c)
	defer open()
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	for range 100 {
		r := m.record("t", "k", strings.Repeat("v", 200))
		must(t, p.Send(t.Context(), []envelope.Record{r}, tx))
	}
	open()
	must(t, p.Flush(t.Context()))
	if n := len(read(t, c, "t")[0]); n != 100 {
		t.Fatalf("%d records, want 100", n)
	}
}

func TestF26F29AForbiddenCreateNamesOperationAndTopic(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	p := producer(t, options(c))
	c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.TopicAuthorizationFailed,
	})
	err := p.EnsureTopic(t.Context(), "t", true)
	wantCode(t, err, fault.BrokerForbids)
	if !strings.Contains(err.Error(), "allow the connector's principal Create on topic t") {
		t.Fatalf("error %q", err)
	}
}

// Without the right to read settings there is less to check, and nothing to stop for.
func TestSettingsThatMayNotBeReadAreNoReasonToStop(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(2, "t"))
	p := producer(t, options(c))
	c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1,
	})
	must(t, p.EnsureTopic(t.Context(), "t", true))
	if p.Partitions("t") != 2 {
		t.Fatalf("%d partitions", p.Partitions("t"))
	}
}

func TestF28MorePartitionsWhileRunningAreSeenAndSaid(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	o := options(c)
	o.extra = append(o.extra, kgo.MetadataMaxAge(time.Second))
	changed := make(chan [2]int, 1)
	o.Metrics.Partitions = func(_ string, before, now int) { changed <- [2]int{before, now} }
	p := producer(t, o, "t")
	m := newMade(t)
	_, err := kadm.NewClient(p.client).UpdatePartitions(t.Context(), 4, "t")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for seen := false; !seen; {
		must(t, p.Send(ctx, []envelope.Record{m.record("t", "abc", "v")}, nil))
		must(t, p.Flush(ctx))
		select {
		case got := <-changed:
			if got != [2]int{1, 4} {
				t.Fatalf("changed from %d to %d", got[0], got[1])
			}
			seen = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	got := read(t, c, "t")
	if len(got[3]) != 1 { // 479470107 % 4
		t.Fatalf("partition 3 holds %d records", len(got[3]))
	}
	r := m.record("t", "", "truncate")
	r.Key, r.HashKey, r.Route, r.Op = nil, nil, envelope.RouteEach, 't'
	tx := newAcks()
	must(t, p.Send(ctx, []envelope.Record{r}, tx))
	must(t, p.Flush(ctx))
	if tx.done != 4 {
		t.Fatalf("the truncate reached %d partitions", tx.done)
	}
	m.allReleased()
}

// The broker that is asked for a new topic's settings may hear of it later than the one that made it.
func TestF26ABrokerHearsOfANewTopicLater(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	asked := 0
	c.ControlKey(int16(kmsg.DescribeConfigs), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if asked++; asked > 2 {
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, of := range r.(*kmsg.DescribeConfigsRequest).Resources {
			one := kmsg.NewDescribeConfigsResponseResource()
			one.ResourceType, one.ResourceName = of.ResourceType, of.ResourceName
			one.ErrorCode = kerr.UnknownTopicOrPartition.Code
			resp.Resources = append(resp.Resources, one)
		}
		return resp, nil, true
	})
	p := producer(t, options(c), "made")
	if n := p.Partitions("made"); n == 0 || asked < 3 {
		t.Errorf("%d partitions after asking %d times", n, asked)
	}
}
