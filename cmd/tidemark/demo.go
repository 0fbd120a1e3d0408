package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/connector/consume"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/schema/registry"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func newDemoCmd() *cobra.Command {
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch change events of a throwaway PostgreSQL; needs nothing",
		Long: "Starts a PostgreSQL of its own (15 MB are downloaded once), a broker and a registry in\n" +
			"this process, a shop whose tables keep changing, and a connector. Prints each event as it\n" +
			"arrives, with what is known of the old row, and a summary at the end. Nothing is left.",
		Example: "  tidemark demo --for 20s",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := slog.New(slog.DiscardHandler)
			if level, _ := cmd.Flags().GetString("log-level"); level == "debug" {
				var err error
				if log, err = newLogger(cmd); err != nil {
					return err
				}
			}
			d := &demo{out: cmd.OutOrStdout(), log: log}
			return d.run(cmd.Context(), length)
		},
	}
	cmd.Flags().DurationVar(&length, "for", 0, "end after this long; 0: at Ctrl-C")
	return cmd
}

// demo is everything that `tidemark demo` starts.
type demo struct {
	out io.Writer
	log *slog.Logger

	pg       *testenv.Postgres
	broker   *testenv.FakeBroker
	registry *testenv.FakeRegistry
	file     *config.File
	conn     *connector.Connector
	events   map[string]int
	closers  []func() error
}

const demoDatabase = "shop"

func (d *demo) run(ctx context.Context, length time.Duration) (err error) {
	defer func() {
		for i := len(d.closers) - 1; i >= 0; i-- {
			err = errors.Join(err, d.closers[i]())
		}
	}()
	began := time.Now()
	if err := d.startServers(ctx); err != nil {
		return quietStop(ctx, err)
	}
	fmt.Fprintf(d.out, "PostgreSQL %s, a broker and a registry are up after %.1f s.\n\n",
		d.pg.Version, time.Since(began).Seconds())
	if length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	return d.play(ctx)
}

// quietStop makes Ctrl-C what it is: no error.
func quietStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (d *demo) startServers(ctx context.Context) error {
	fmt.Fprintln(d.out, "Starting a PostgreSQL of its own (downloaded once) ...")
	var err error
	if d.pg, err = testenv.StartPostgres(ctx, testenv.PostgresOptions{}); err != nil {
		return err
	}
	d.closers = append(d.closers, d.pg.Close)
	if d.broker, err = testenv.StartFakeBroker(testenv.FakeBrokerOptions{}); err != nil {
		return err
	}
	d.closers = append(d.closers, d.broker.Close)
	if d.registry, err = testenv.StartFakeRegistry(testenv.FakeRegistryOptions{}); err != nil {
		return err
	}
	d.closers = append(d.closers, d.registry.Close)
	if err := d.pg.Exec(ctx, "postgres", "CREATE DATABASE "+demoDatabase); err != nil {
		return err
	}
	return d.pg.Exec(ctx, demoDatabase, shopTables)
}

func (d *demo) settings() error {
	var err error
	d.file, _, err = config.FromMaps(map[string]string{
		"bootstrap.servers": d.broker.Addrs()[0], "schema.registry.url": d.registry.URL,
		"http.listen": "",
	}, map[string]map[string]string{"shop": {
		"topic.prefix": "shop", "database.hostname": d.pg.Host,
		"database.port": strconv.Itoa(d.pg.Port), "database.user": d.pg.User,
		"database.password": d.pg.Password, "database.dbname": demoDatabase,
		"table.include.list": `public\..*`, "message.prefix.include.list": "shop",
		"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1",
		"idle.advance.after.ms": "1000", "heartbeat.interval.ms": "2000",
	}})
	return err
}

// play runs connector, shop and reader until ctx ends, then prints the summary.
func (d *demo) play(ctx context.Context) error {
	if err := d.settings(); err != nil {
		return err
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	d.conn = connector.New(d.file.Connectors[0], d.file.Worker, connector.Deps{
		Log: d.log, Metrics: metrics.New(prometheus.NewRegistry()).Connector("shop"), Version: version,
	})
	var wg sync.WaitGroup
	errs := make(chan error, 3)
	part := func(f func(context.Context) error) {
		wg.Go(func() {
			if err := f(work); err != nil && work.Err() == nil {
				errs <- err
				stop()
			}
		})
	}
	part(d.conn.Run)
	part(d.printEvents)
	part(func(ctx context.Context) error {
		for d.conn.Status().State != string(connector.StateStreaming) {
			if !pause(ctx, 20*time.Millisecond) {
				return nil
			}
		}
		return runShop(ctx, d.pg, demoDatabase)
	})
	<-work.Done()
	status := d.conn.Status()
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	return d.summary(status.Positions)
}

// printEvents reads the topics and prints each event as it arrives.
func (d *demo) printEvents(ctx context.Context) error {
	schemas, err := registry.New(registry.Options{URLs: []string{d.registry.URL}})
	if err != nil {
		return err
	}
	defer schemas.Close()
	r, err := consume.New(ctx, consume.Options{
		Kafka: d.file.Worker.Kafka, Schemas: schemas, Prefixes: []string{"shop"}, FromBeginning: true,
	})
	if err != nil {
		return err
	}
	defer r.Close()
	d.events = map[string]int{}
	p := consume.NewPrinter(d.out, consume.UseColor(d.out))
	for {
		m, err := r.Next(ctx)
		if err != nil {
			return quietStop(ctx, err)
		}
		if e := m.Event(); e != nil {
			d.events["op "+e.Op]++
			d.events["before-image "+e.BeforeImage]++
		}
		if err := p.Print(m); err != nil {
			return err
		}
	}
}

// summary says what came, and that nothing is held back on the server.
func (d *demo) summary(positions map[string]string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := d.pg.Connect(ctx, demoDatabase)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // the server goes away next
	var lag, retained string
	err = conn.QueryRow(ctx, `SELECT pg_size_pretty(pg_current_wal_lsn() - confirmed_flush_lsn),
		pg_size_pretty(pg_current_wal_lsn() - restart_lsn)
		FROM pg_replication_slots WHERE slot_name = $1`, d.file.Connectors[0].SlotName).
		Scan(&lag, &retained)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nEvents by operation:    %s\n", counts(d.events, "op ",
		"r", "c", "u", "d", "t", "m"))
	fmt.Fprintf(d.out, "Events by before-image: %s\n", counts(d.events, "before-image ",
		"NOT_APPLICABLE", "ABSENT", "KEY", "FULL"))
	fmt.Fprintf(d.out, "Positions:              flushed %s <= stored %s <= confirmed %s <= received %s\n",
		positions["flushed"], positions["stored"], positions["confirmed"], positions["received"])
	fmt.Fprintf(d.out, "Slot:                   lag %s, WAL retained %s\n", lag, retained)
	return nil
}

func counts(all map[string]int, prefix string, names ...string) string {
	text := ""
	for _, n := range names {
		text += fmt.Sprintf("%s %d  ", n, all[prefix+n])
	}
	return text
}

// pause waits, and returns false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
