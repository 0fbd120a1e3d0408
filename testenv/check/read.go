package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Run reads the topics of all tables to their end, and holds them against the promise and the
// source. An error means that it could not be judged; what is wrong is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.DrainTimeout == 0 {
		o.DrainTimeout = time.Minute
	}
	c := newChecker(&o)
	conn, err := pgx.Connect(ctx, o.PostgresURL)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if o.OffsetsTopic != "" {
		if c.exact, err = exactSnapshot(ctx, &o); err != nil {
			return nil, err
		}
	}
	if err := c.read(ctx); err != nil {
		return nil, err
	}
	c.finish()
	if err := c.compare(ctx, conn); err != nil {
		return nil, err
	}
	if o.Audit != "" {
		if err := c.audit(ctx, conn); err != nil {
			return nil, fmt.Errorf("read the audit %s: %w", o.Audit, err)
		}
	}
	return c.report, nil
}

// TopicOf is a table's topic: names with characters that Kafka or Avro forbid are not for here.
func (o *Options) TopicOf(t *Table) string { return o.Prefix + "." + t.Schema + "." + t.Name }

func (o *Options) client(more ...kgo.Opt) (*kgo.Client, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(o.Brokers...), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.FetchMaxWait(100 * time.Millisecond),
	}
	if o.ReadCommitted || o.ExactlyOnce {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	return kgo.NewClient(append(opts, more...)...)
}

// read feeds every record of every topic to the checker, until the markers are there and the end
// is reached.
func (c *checker) read(ctx context.Context) error {
	admin, err := c.o.client()
	if err != nil {
		return err
	}
	defer admin.Close()
	deadline := time.Now().Add(c.o.DrainTimeout)
	names, err := c.discover(ctx, kadm.NewClient(admin), deadline)
	if err != nil || len(names) == 0 {
		return err
	}
	consumer, err := c.o.client(kgo.ConsumeTopics(names...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer consumer.Close()
	decoder := NewDecoder(c.o.RegistryURL)
	at := map[string]int64{} // next offset by partition
	for {
		end, err := c.end(ctx, kadm.NewClient(admin), names)
		if err != nil {
			return err
		}
		if reached(at, end) {
			missing := c.unmarked()
			if len(missing) == 0 {
				return nil
			}
			if time.Now().After(deadline) {
				c.report.fail(Hole, "no marker after %s in %s", c.o.DrainTimeout,
					strings.Join(missing, ", "))
				return nil
			}
		}
		if err := c.poll(ctx, consumer, decoder, at); err != nil {
			return err
		}
	}
}

// poll takes what there is within a moment.
func (c *checker) poll(
	ctx context.Context, consumer *kgo.Client, decoder *Decoder, at map[string]int64,
) error {
	moment, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	fetches := consumer.PollFetches(moment)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) {
			return fmt.Errorf("read %s[%d]: %w", e.Topic, e.Partition, e.Err)
		}
	}
	for records := fetches.RecordIter(); !records.Done(); {
		rec := records.Next()
		at[fmt.Sprintf("%s/%d", rec.Topic, rec.Partition)] = rec.Offset + 1
		if rec.Attrs.IsControl() {
			continue
		}
		e, err := decoder.Decode(ctx, rec)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.report.Records++
			c.report.fail(Partition, "%s[%d]@%d does not decode: %v", rec.Topic, rec.Partition,
				rec.Offset, err)
			continue
		}
		c.add(e)
	}
	return nil
}

// discover waits for the topics of all tables, and makes those that there are known.
func (c *checker) discover(
	ctx context.Context, admin *kadm.Client, deadline time.Time,
) ([]string, error) {
	tables := map[string]*Table{}
	for i := range c.o.Tables {
		tables[c.o.TopicOf(&c.o.Tables[i])] = &c.o.Tables[i]
	}
	for {
		all, err := admin.ListTopics(ctx)
		if err != nil {
			return nil, err
		}
		var found, missing []string
		for name := range tables {
			if d, ok := all[name]; ok && d.Err == nil && len(d.Partitions) > 0 {
				found = append(found, name)
			} else {
				missing = append(missing, name)
			}
		}
		late := time.Now().After(deadline) || c.o.Marker == ""
		if len(missing) > 0 && !late {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		sort.Strings(missing)
		if len(missing) > 0 {
			c.report.fail(Hole, "no topic %s", strings.Join(missing, ", "))
		}
		for _, name := range found {
			c.topic(name, tables[name], int32(len(all[name].Partitions)))
		}
		return found, nil
	}
}

// end lists where the partitions end.
func (c *checker) end(
	ctx context.Context, admin *kadm.Client, names []string,
) (map[string]int64, error) {
	list := admin.ListEndOffsets
	if c.o.ReadCommitted || c.o.ExactlyOnce {
		list = admin.ListCommittedOffsets
	}
	listed, err := list(ctx, names...)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		out[fmt.Sprintf("%s/%d", o.Topic, o.Partition)] = o.Offset
	})
	return out, listed.Error()
}

// reached says whether everything up to the ends was read. Offsets at a partition's end that hold
// no record of ours are control records, which are kept for this.
func reached(at, end map[string]int64) bool {
	for p, n := range end {
		if at[p] < n {
			return false
		}
	}
	return true
}

// unmarked names the partitions that wait for a marker: all of a table with a key, one of a table
// without.
func (c *checker) unmarked() (missing []string) {
	if c.o.Marker == "" {
		return nil
	}
	for name, t := range c.topics {
		var here []string
		for n, p := range t.parts {
			if !p.marked {
				here = append(here, fmt.Sprintf("%s[%d]", name, n))
			}
		}
		if t.table.Keyless && len(here) < int(t.size) {
			continue
		}
		missing = append(missing, here...)
	}
	sort.Strings(missing)
	return missing
}

// exactSnapshot asks the stored record whether the snapshot was the slot's own.
func exactSnapshot(ctx context.Context, o *Options) (bool, error) {
	s := newStoredReader(o.Brokers, o.OffsetsTopic, offsetsKey(o.Connector, o.Prefix))
	defer s.close()
	if err := s.read(ctx); err != nil {
		return false, err
	}
	var record storedSnapshot
	if s.committed == nil {
		return false, nil
	}
	if err := json.Unmarshal(s.committed, &record); err != nil {
		return false, fmt.Errorf("the offsets record: %w", err)
	}
	return record.exact(), nil
}
