package preflight

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	schemacatalog "github.com/tidemark-cdc/tidemark/schema/catalog"
	"github.com/tidemark-cdc/tidemark/schema/registry"
)

// defaultTimeout bounds one check: longer than any of its questions takes on a healthy server,
// short enough that a person waits for the whole report.
const defaultTimeout = 15 * time.Second

// Options says what to check. Everything else is read from the servers.
type Options struct {
	Connector *config.Connector
	Worker    config.Worker
	Timeout   time.Duration // of one check; 0 is 15 seconds
	Columns   ColumnCheck   // nil: columns are not checked
}

// ColumnCheck holds the keys about columns against the captured tables; connector.CheckColumns.
type ColumnCheck func(
	ctx context.Context, cat *schemacatalog.Catalog, cfg *config.Connector, publication string,
	viaRoot bool,
) (faults []error, unmatched [][2]string, err error)

// Run makes every check of the table and reports what it found. It changes nothing anywhere. A
// server that cannot be reached is a finding; the error is for a context that ended.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	p := &probe{cfg: o.Connector, worker: o.Worker, timeout: o.Timeout, columns: o.Columns}
	p.away = map[need]string{}
	defer p.close()
	report := &Report{Connector: o.Connector.Name, Passed: true, Findings: []Finding{}}
	for i := range checks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, f := range p.make(ctx, &checks[i]) {
			report.add(f)
		}
	}
	return report, ctx.Err()
}

// need is something that a check cannot do without.
type need int

const (
	needPostgres    need = iota // an SQL session on a server that the queries are made for
	needSlot                    // what the server says of the slot
	needCatalog                 // the tables, columns and indexes
	needReplication             // a replication session
	needBroker
	needOffsets // an offsets topic that may hold positions, or none
	needRegistry
)

// probe is what the checks have found out so far. It is used by one goroutine.
type probe struct {
	cfg     *config.Connector
	worker  config.Worker
	timeout time.Duration
	columns ColumnCheck
	away    map[need]string // why something that is needed is not there

	conn        *pgx.Conn
	server      serverFacts
	slot        *slotFacts        // nil: no slot of this name
	publication *publicationFacts // nil: none of this name
	relations   []*relation       // all of the database, by schema and name
	tables      []*relation       // those that are captured

	kafka    *kgo.Client
	admin    *kadm.Client           // on kafka
	topics   map[string]*topicFacts // captured tables' topics and the offsets topic
	registry *registry.Client
}

func (p *probe) close() {
	// The clean-up has its own deadline: the caller's context may be over.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if p.conn != nil {
		_ = p.conn.Close(ctx) // read-only: nothing can be lost
	}
	if p.kafka != nil {
		p.kafka.Close()
	}
	if p.registry != nil {
		p.registry.Close()
	}
}

// check is a row of the table.
type check struct {
	id       string
	area     string
	severity Severity
	code     fault.Code // what `run` stops with; empty when it does not
	what     string     // what is wanted, as the reference prints it
	needs    []need
	run      func(ctx context.Context, p *probe, o *outcome) error
}

// outcome collects what one check says.
type outcome struct {
	summary string
	bad     []Finding
}

// ok sets what the line of a check says that found nothing wrong.
func (o *outcome) ok(format string, args ...any) { o.summary = fmt.Sprintf(format, args...) }

// fail adds something wrong with an object; wanted and fix may be empty.
func (o *outcome) fail(object, found, wanted, fix string) {
	o.bad = append(o.bad, Finding{Object: object, Found: found, Wanted: wanted, Fix: fix})
}

// failAs is fail with a severity of its own: for the milder form of what a check looks for.
func (o *outcome) failAs(severity Severity, object, found, wanted, fix string) {
	o.fail(object, found, wanted, fix)
	o.bad[len(o.bad)-1].Severity = severity
}

// make makes one check within its timeout.
func (p *probe) make(ctx context.Context, c *check) []Finding {
	base := Finding{Check: c.id, Area: c.area, Severity: c.severity, Wanted: c.what}
	for _, n := range c.needs {
		if why, away := p.away[n]; away {
			base.Status, base.Found = NotChecked, why
			return []Finding{base}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	var o outcome
	if err := c.run(ctx, p, &o); err != nil {
		base.Status, base.Code = Unknown, fault.CodeOf(err)
		found, wanted, fix := describe(err)
		base.Found, base.Fix = found, fix
		if wanted != "" {
			base.Wanted = wanted
		}
		return []Finding{base}
	}
	if len(o.bad) == 0 {
		base.Status, base.Found = OK, o.summary
		return []Finding{base}
	}
	for i := range o.bad {
		f := &o.bad[i]
		f.Check, f.Area, f.Status = c.id, c.area, Failed
		if f.Severity == "" {
			f.Severity = c.severity
		}
		if f.Wanted == "" {
			f.Wanted = c.what
		}
		if f.Code == "" && f.Severity == Error {
			f.Code = c.code
		}
	}
	return o.bad
}
