package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// contender is somebody who takes rows from a slot to a topic.
type contender struct {
	name  string
	start func(p *peers, ctx context.Context, j job) (*testenv.Program, error)
}

// peers is what all of the contenders share.
type peers struct {
	*bench
	kafka    *testenv.Kafka
	registry *testenv.Registry
	client   *kgo.Client
	admin    *kadm.Client
	rows     map[string]map[string][]watched // by what was raced, and the contender
	delays   map[string]steady
}

var (
	tidemark = contender{"Tidemark", func(
		p *peers, ctx context.Context, j job,
	) (*testenv.Program, error) {
		return p.startTidemark(ctx, j)
	}}
	dbzJSON = contender{"Debezium, JSON", func(
		p *peers, _ context.Context, j job,
	) (*testenv.Program, error) {
		return p.startDebezium(j, jsonConverters, tuned)
	}}
	dbzAvro = contender{"Debezium, Avro", func(
		p *peers, _ context.Context, j job,
	) (*testenv.Program, error) {
		return p.startDebezium(j, p.avroConverters(), tuned)
	}}
	dbzDefaults = contender{"Debezium, defaults", func(
		p *peers, _ context.Context, j job,
	) (*testenv.Program, error) {
		return p.startDebezium(j, jsonConverters, nil)
	}}
)

// tuned are settings that make Debezium fast, found by trying; acks=all is Connect's own default,
// lz4 is Tidemark's.
var tuned = map[string]string{
	"max.batch.size": "8192", "max.queue.size": "32768", "poll.interval.ms": "5",
	"producer.override.compression.type": "lz4", "producer.override.linger.ms": "5",
	"producer.override.batch.size":    "262144",
	"producer.override.buffer.memory": "67108864",
}

var jsonConverters = map[string]string{
	"key.converter":                  "org.apache.kafka.connect.json.JsonConverter",
	"value.converter":                "org.apache.kafka.connect.json.JsonConverter",
	"key.converter.schemas.enable":   "false",
	"value.converter.schemas.enable": "false",
}

func (p *peers) avroConverters() map[string]string {
	all := map[string]string{}
	for _, side := range []string{"key.converter", "value.converter"} {
		all[side] = "io.apicurio.registry.utils.converter.AvroConverter"
		for name, value := range map[string]string{
			"url": strings.TrimSuffix(p.registry.URL, "/apis/ccompat/v7") +
				"/apis/registry/v2",
			"headers.enabled": "false", "as-confluent": "true", "auto-register": "true",
			"find-latest": "true", "use-id": "contentId",
		} {
			all[side+".apicurio.registry."+name] = value
		}
	}
	return all
}

func (p *peers) startDebezium(
	j job, converters, settings map[string]string,
) (*testenv.Program, error) {
	_, ours := j.keys()
	keys := map[string]string{
		"name": j.Connector, "tasks.max": "1", "plugin.name": "pgoutput",
		"connector.class":             "io.debezium.connector.postgresql.PostgresConnector",
		"publication.autocreate.mode": "disabled", "tombstones.on.delete": "true",
		"snapshot.mode": "initial",
	}
	for name, value := range ours {
		if !strings.HasPrefix(name, "topic.creation.") { // the topic is there
			keys[name] = value
		}
	}
	maps.Copy(keys, settings)
	worker := maps.Clone(converters)
	worker["connector.client.config.override.policy"] = "All"
	return testenv.StartConnect(testenv.ConnectOptions{
		Bootstrap: strings.Join(p.kafka.Bootstrap(), ","), Worker: worker, Connector: keys,
	})
}

// with runs a contender on a slot ("": it makes one, after a snapshot), and ends it after f.
func (p *peers) with(
	ctx context.Context, c contender, s prepared, slot string,
	f func(j job, running *testenv.Program, topic string) error,
) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	j := p.job(s, slot)
	j.Brokers, j.Registry = p.kafka.Bootstrap(), p.registry.URL
	topic := j.Connector + ".public." + j.Table
	if _, err := p.admin.CreateTopic(ctx, int32(j.Partitions), 1, nil, topic); err != nil {
		return err
	}
	running, err := c.start(p, ctx, j)
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	err = f(j, running, topic)
	if err != nil {
		log, _ := os.ReadFile(running.LogFile)
		err = fmt.Errorf("%s: %w\n%s", c.name, err, tail(string(log), 30))
	}
	err = errors.Join(err, running.Close())
	if slot == "" {
		err = errors.Join(err, dropSlot(ctx, p.pg, j.Connector))
	}
	_, dropped := p.admin.DeleteTopics(ctx, topic)
	return errors.Join(err, dropped)
}

// race lets each contender take a shape's rows, in turn, as often as there are runs; from a copy of
// its slot, or from the table.
func (p *peers) race(
	ctx context.Context, what string, s prepared, fromSlot bool, all ...contender,
) error {
	p.rows[what] = map[string][]watched{}
	for range p.runs {
		for _, c := range all {
			one := func(slot string) error {
				return p.with(ctx, c, s, slot, func(
					_ job, running *testenv.Program, topic string,
				) error {
					w, err := watch(ctx, p.admin, running, topic, int64(s.rows))
					p.rows[what][c.name] = append(p.rows[what][c.name], w)
					fmt.Fprintf(os.Stderr, "%-10s %-18s %s rows/s, %.1f CPU s, %d MiB, first after %.2f s\n",
						what, c.name, number(float64(w.Rows)/w.Took), w.CPU, w.RSS>>20, w.First)
					return err
				})
			}
			var err error
			if fromSlot {
				err = withCopy(ctx, p.pg, s.slot, one)
			} else {
				err = one("")
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
