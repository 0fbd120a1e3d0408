package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// latencyLoad is what is written while the way of its rows is timed.
type latencyLoad struct {
	rate int           // commits a second, of one row each
	warm time.Duration // not counted: a JVM compiles, caches fill
	last time.Duration // counted, after that
	from int64         // the key of the first row
}

// delays are the times from a commit's acknowledgement to the consumer's poll that returns it.
type delays struct {
	P50  float64 `json:"p50_seconds"`
	P99  float64 `json:"p99_seconds"`
	Rows int     `json:"rows"`
	Rate float64 `json:"commits_per_second"` // what the writer really did
}

// arrivals are when a consumer saw each row.
type arrivals struct {
	sync.Mutex
	at map[int64]time.Time
}

func (a *arrivals) count() int {
	a.Lock()
	defer a.Unlock()
	return len(a.at)
}

// keyOf takes the row's key from a record's: a JSON object with one number, or Avro behind five
// bytes, where a long is a varint.
func keyOf(key []byte) (int64, error) {
	if len(key) > 5 && key[0] == 0 {
		n, size := binary.Varint(key[5:])
		if size != len(key)-5 {
			return 0, fmt.Errorf("a key of %d bytes is not one long", len(key))
		}
		return n, nil
	}
	_, text, ok := strings.Cut(string(key), ":")
	if !ok {
		return 0, errors.New("a key is neither Avro nor JSON with one field")
	}
	return strconv.ParseInt(strings.Trim(text, " }"), 10, 64)
}

// collect reads a topic until ctx ends.
func (a *arrivals) collect(ctx context.Context, brokers []string, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		now := time.Now()
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		a.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			key, bad := keyOf(r.Key)
			if bad != nil {
				err = bad
				return
			}
			a.at[key] = now
		})
		a.Unlock()
		if err != nil {
			return err
		}
	}
}

// awaitRows waits until so many rows have arrived, or a check fails.
func (a *arrivals) awaitRows(ctx context.Context, n int, check func() error) error {
	for a.count() < n {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d rows arrived: %w", a.count(), n, ctx.Err())
		case <-time.After(pollEvery):
		}
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// latency writes the load to a table and times its way to a consumer of the topic, once the one row
// has come that waited in the slot. check says whether what carries them still runs.
func latency(
	ctx context.Context, pg *testenv.Postgres, table string, brokers []string, topic string,
	load latencyLoad, check func() error,
) (d delays, err error) {
	ctx, cancel := context.WithTimeout(ctx, load.warm+load.last+2*time.Minute)
	defer cancel()
	seen := &arrivals{at: map[int64]time.Time{}}
	reading, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- seen.collect(reading, brokers, topic) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	if err := seen.awaitRows(ctx, 1, check); err != nil {
		return d, err
	}
	committed, err := write(ctx, pg, table, load)
	if err != nil {
		return d, err
	}
	if err := seen.awaitRows(ctx, 1+len(committed), check); err != nil {
		return d, err
	}
	skip := int(load.warm.Seconds() * float64(load.rate))
	took := make([]float64, 0, len(committed))
	seen.Lock()
	defer seen.Unlock()
	for i, at := range committed[skip:] {
		arrived, ok := seen.at[load.from+int64(skip+i)]
		if !ok {
			return d, fmt.Errorf("row %d did not arrive", load.from+int64(skip+i))
		}
		took = append(took, max(0, arrived.Sub(at).Seconds()))
	}
	slices.Sort(took)
	span := committed[len(committed)-1].Sub(committed[skip]).Seconds()
	return delays{
		P50: took[len(took)/2], P99: took[len(took)*99/100], Rows: len(took),
		Rate: float64(len(took)-1) / span,
	}, nil
}

// write commits rows at a steady rate and returns when each was acknowledged; a commit that is late
// does not make the following ones fewer.
func write(
	ctx context.Context, pg *testenv.Postgres, table string, load latencyLoad,
) ([]time.Time, error) {
	conn, err := pg.Connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }() // every commit was acknowledged
	// The bench's server commits asynchronously: the walsender would get a commit when the WAL writer
	// comes by, every 200 ms.
	if _, err := conn.Exec(ctx, "SET synchronous_commit = on"); err != nil {
		return nil, err
	}
	insert := fmt.Sprintf(ordinaryInsert, table, "$1::bigint", "$1::bigint")
	if _, err := conn.Prepare(ctx, "insert", insert); err != nil {
		return nil, err
	}
	rows := int((load.warm + load.last).Seconds() * float64(load.rate))
	committed := make([]time.Time, 0, rows)
	began, every := time.Now(), time.Second/time.Duration(load.rate)
	for i := range rows {
		if wait := time.Until(began.Add(time.Duration(i) * every)); wait > 0 {
			time.Sleep(wait) // the rate is what is asked for
		}
		if _, err := conn.Exec(ctx, "insert", load.from+int64(i)); err != nil {
			return nil, err
		}
		committed = append(committed, time.Now())
	}
	return committed, nil
}
