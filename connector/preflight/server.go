package preflight

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/connector/capture"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
)

// oldest is the first major version with logical messages in the stream.
const oldest = 14

// applicationName is how the sessions of a check name themselves.
const applicationName = "tidemark check"

func checkConnection(ctx context.Context, p *probe, o *outcome) error {
	db := p.cfg.Database
	where := fmt.Sprintf("%s:%d, database %s, user %s", db.Host, db.Port, db.Name, db.User)
	conn, err := pgdial.Connect(ctx, db, applicationName)
	if err != nil {
		p.lose("PostgreSQL cannot be asked")
		o.failWith(where, err)
		return nil
	}
	p.conn = conn
	err = conn.QueryRow(ctx, versionSQL).Scan(&p.server.Version, &p.server.VersionNum)
	if err != nil {
		p.lose("PostgreSQL cannot be asked")
		return pgdial.Wrap(err)
	}
	o.ok("%s", where)
	return nil
}

// lose marks PostgreSQL as away, and with it what is read from it.
func (p *probe) lose(why string) {
	p.away[needPostgres] = why
	p.away[needSlot] = why
	p.away[needCatalog] = why
}

func checkVersion(ctx context.Context, p *probe, o *outcome) error {
	s := &p.server
	line, _, _ := strings.Cut(s.Version, ",")
	if s.major() < oldest || !strings.HasPrefix(s.Version, "PostgreSQL ") {
		p.lose("the server is not PostgreSQL 14 or later")
		o.fail("", line, fmt.Sprintf("PostgreSQL %d or later", oldest), "")
		return nil
	}
	if err := s.load(ctx, p.conn, p.cfg.Publication); err != nil {
		p.lose("the server does not answer PostgreSQL's catalog queries")
		return err
	}
	if s.Recovery && s.major() < 16 {
		o.fail("", "PostgreSQL "+s.dotted()+", a standby", "a primary, or a standby of 16 or later",
			"set database.hostname to the primary")
		return nil
	}
	role := "primary"
	if s.Recovery {
		role = "standby"
	}
	o.ok("PostgreSQL %s, %s", s.dotted(), role)
	return nil
}

func checkFork(_ context.Context, p *probe, o *outcome) error {
	if p.server.fork() {
		o.fail("", p.server.Version, "PostgreSQL itself: what is known of its keepalives does not "+
			"hold for other servers, so an idle stream moves the slot by heartbeats only", "")
		return nil
	}
	o.ok("PostgreSQL itself")
	return nil
}

// snapshotRace is the last minor of each major version in which an initial snapshot can miss a
// transaction whose commit record is written and that is not yet visible. Versions that are not
// listed never got the correction.
var snapshotRace = map[int]int{18: 6, 17: 11, 16: 15, 15: 19}

func checkMinor(_ context.Context, p *probe, o *outcome) error {
	s := &p.server
	last, listed := snapshotRace[s.major()]
	switch {
	case s.major() > 18, listed && s.minor() > last:
		o.ok("%s has the known corrections", s.dotted())
	case listed:
		o.fail("", s.dotted()+": an initial snapshot can miss a transaction that commits while the "+
			"slot is made", fmt.Sprintf("a minor version after %d.%d", s.major(), last),
			"update the server, or make the first start in a moment without writes")
	default:
		o.fail("", s.dotted()+": an initial snapshot can miss a transaction that commits while the "+
			"slot is made; this major version has no correction", "15 or later with its last minor",
			"make the first start in a moment without writes")
	}
	return nil
}

func checkWALLevel(_ context.Context, p *probe, o *outcome) error {
	if p.server.WALLevel == "logical" {
		o.ok("logical")
		return nil
	}
	o.fail("", p.server.WALLevel, "logical",
		"ALTER SYSTEM SET wal_level = 'logical'; -- then restart the server; managed services have "+
			"a setting of their own, such as rds.logical_replication, cloudsql.logical_decoding")
	return nil
}

func checkSlotsLeft(_ context.Context, p *probe, o *outcome) error {
	s := &p.server
	found := fmt.Sprintf("%d of %d in use", s.Slots, s.MaxSlots)
	if p.slot == nil && s.Slots >= s.MaxSlots {
		o.fail("max_replication_slots", found, "one left for "+p.cfg.SlotName, fmt.Sprintf(
			"ALTER SYSTEM SET max_replication_slots = %d; -- then restart the server", s.MaxSlots+4))
		return nil
	}
	o.ok("%s", found)
	return nil
}

func checkSendersLeft(_ context.Context, p *probe, o *outcome) error {
	s := &p.server
	found := fmt.Sprintf("%d of %d in use", s.Senders, s.MaxSenders)
	if (p.slot == nil || !p.slot.Active) && s.Senders >= s.MaxSenders {
		o.fail("max_wal_senders", found, "one left for the stream", fmt.Sprintf(
			"ALTER SYSTEM SET max_wal_senders = %d; -- then restart the server", s.MaxSenders+4))
		return nil
	}
	o.ok("%s", found)
	return nil
}

// sessionsNeeded is how many ordinary connections a connector holds at its start: catalog and
// heartbeats, and a snapshot's reader.
const sessionsNeeded = 2

func checkConnectionsLeft(_ context.Context, p *probe, o *outcome) error {
	s := &p.server
	found := fmt.Sprintf("%d of %d in use", s.Conns, s.MaxConns)
	switch {
	case s.Conns+sessionsNeeded > s.MaxConns:
		o.fail("max_connections", found, fmt.Sprintf("%d left", sessionsNeeded),
			"close idle sessions, or raise max_connections and restart the server")
	case s.RoleConnLimit >= 0 && s.RoleConnLimit <= sessionsNeeded:
		o.fail("role "+s.Role, fmt.Sprintf("CONNECTION LIMIT %d", s.RoleConnLimit),
			fmt.Sprintf("more than %d", sessionsNeeded),
			fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT -1;", s.Role))
	default:
		o.ok("%s", found)
	}
	return nil
}

func checkReplicationRole(_ context.Context, p *probe, o *outcome) error {
	s := &p.server
	switch {
	case s.Superuser:
		o.ok("%s is a superuser", s.Role)
	case s.Replication:
		o.ok("%s has REPLICATION", s.Role)
	case s.RDS:
		o.ok("%s is a member of rds_replication", s.Role)
	default:
		o.fail("role "+s.Role, "NOREPLICATION", "REPLICATION", p.grantReplication())
	}
	return nil
}

func (p *probe) grantReplication() string {
	return fmt.Sprintf("ALTER ROLE %s REPLICATION; -- Amazon RDS: GRANT rds_replication TO %s;",
		p.server.Role, p.server.Role)
}

// checkReplicationSession opens the kind of session that the stream will be: pg_hba.conf, TLS and
// poolers in between can refuse it though an ordinary one is let in.
func checkReplicationSession(ctx context.Context, p *probe, o *outcome) error {
	conn, err := capture.Dial(ctx, p.cfg.Database, applicationName)
	if err != nil {
		p.away[needReplication] = "the server lets no replication session in"
		o.failWith("", err)
		if fault.Has(err, fault.NotAReplicationRole) {
			o.bad[0].Fix = p.grantReplication()
		}
		return nil
	}
	defer func() { _ = conn.Close(ctx) }()
	system, err := conn.Identify(ctx)
	if err != nil {
		p.away[needReplication] = "the server answers no replication command"
		o.failWith("", err)
		return nil
	}
	o.ok("system %s, timeline %d, at %s", system.SystemID, system.Timeline, system.WAL)
	return nil
}

func checkPluginAllowed(_ context.Context, p *probe, o *outcome) error {
	allowed := p.server.PluginLibraries
	if allowed == nil {
		o.ok("this version has no output_plugin_libraries")
		return nil
	}
	for _, name := range strings.Split(*allowed, ",") {
		switch strings.Trim(name, ` "'`) {
		case "pgoutput", "*":
			o.ok("output_plugin_libraries has pgoutput")
			return nil
		}
	}
	o.fail("output_plugin_libraries", *allowed, "pgoutput among them", fmt.Sprintf(
		"ALTER SYSTEM SET output_plugin_libraries = '%s'; SELECT pg_reload_conf();",
		strings.TrimPrefix(strings.ReplaceAll(*allowed, "'", "''")+", pgoutput", ", ")))
	return nil
}

func checkEncoding(_ context.Context, p *probe, o *outcome) error {
	if p.server.Encoding != "SQL_ASCII" {
		o.ok("%s", p.server.Encoding)
		return nil
	}
	o.fail("database "+p.server.Database, "SQL_ASCII: the server checks and converts nothing",
		"an encoding that says what the bytes mean (UTF8)",
		"none in place: values that are not UTF-8 arrive as UNREPRESENTABLE")
	return nil
}

func checkEmitMessage(_ context.Context, p *probe, o *outcome) error {
	s := &p.server
	switch {
	case p.cfg.HeartbeatInterval <= 0:
		o.ok("heartbeats are off")
	case s.EmitMessage:
		o.ok("%s may call it", s.Role)
	default:
		o.fail("pg_logical_emit_message", "no EXECUTE for "+s.Role, "EXECUTE, for heartbeats",
			fmt.Sprintf("GRANT EXECUTE ON FUNCTION pg_catalog.%s TO %s;", s.EmitSignature, s.Role))
	}
	return nil
}
