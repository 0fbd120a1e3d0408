package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// postgresDefaults are the settings of every server, for what differs from the server's own and is
// not a matter of course. Tests of a default (WAL segment size, checkpoint, autovacuum) rely on all
// others being the server's own.
var postgresDefaults = map[string]string{
	"listen_addresses":          "127.0.0.1",
	"unix_socket_directories":   "",
	"wal_level":                 "logical",
	"max_wal_senders":           "20",
	"max_replication_slots":     "20",
	"max_prepared_transactions": "10",
	"max_connections":           "100",
	"shared_buffers":            "32MB",
	// Segments in files of the data directory: none is left in /dev/shm by a killed server.
	"dynamic_shared_memory_type": "mmap",
	"jit":                        "off",
	"timezone":                   "UTC",
	"log_timezone":               "UTC",
	"log_line_prefix":            "%m [%p] %a ",
	"lc_messages":                "C",
}

// configurationFile holds our settings, which the template's postgresql.conf includes; ALTER SYSTEM overrides it.
const configurationFile = "tidemark.conf"

func (p *Postgres) writeConfiguration(o PostgresOptions) error {
	settings := map[string]string{"port": strconv.Itoa(p.Port), "fsync": "off"}
	for name, value := range postgresDefaults {
		settings[name] = value
	}
	if o.Fsync {
		settings["fsync"] = "on"
	}
	if o.TLS {
		settings["ssl"] = "on"
		settings["ssl_cert_file"] = filepath.Join(p.dir, "server.pem")
		settings["ssl_key_file"] = filepath.Join(p.dir, "server.key")
	}
	for name, value := range o.Settings {
		settings[name] = value
	}
	var conf strings.Builder
	for _, name := range sortedKeys(settings) {
		fmt.Fprintf(&conf, "%s = %s\n", name, quoteLiteral(settings[name]))
	}
	kind := "host"
	if o.TLS {
		kind = "hostssl"
	}
	hba := append([]string{}, o.HBA...)
	for _, database := range []string{"all", "replication"} {
		hba = append(hba, fmt.Sprintf("%s %s all 127.0.0.1/32 scram-sha-256", kind, database))
	}
	cred := serverUser()
	return errors.Join(
		writeAs(cred, filepath.Join(p.DataDir, configurationFile), conf.String(), os.O_TRUNC),
		writeAs(cred, filepath.Join(p.DataDir, "pg_hba.conf"), strings.Join(hba, "\n")+"\n",
			os.O_TRUNC))
}

// SetConf changes server settings as ALTER SYSTEM does and reloads; an empty value takes a setting
// back to what it was at the start. A setting that needs a restart is in force after Restart.
func (p *Postgres) SetConf(ctx context.Context, settings map[string]string) error {
	for _, name := range sortedKeys(settings) {
		sql := fmt.Sprintf("ALTER SYSTEM SET %s = %s", name, quoteLiteral(settings[name]))
		if settings[name] == "" {
			sql = "ALTER SYSTEM RESET " + name
		}
		if err := p.Exec(ctx, "postgres", sql); err != nil {
			return err
		}
	}
	return p.Reload(ctx)
}

// Reload makes the server read its configuration again.
func (p *Postgres) Reload(ctx context.Context) error {
	return p.Exec(ctx, "postgres", "SELECT pg_reload_conf()")
}

// Restart stops the server in a mode of Stop and starts it again.
func (p *Postgres) Restart(ctx context.Context, mode string) error {
	if err := p.Stop(ctx, mode); err != nil {
		return err
	}
	return p.Start(ctx)
}

// pidFile returns the 8 lines of postmaster.pid (utils/pidfile.h), without the spaces that fill
// them; empty ones where they are missing. An orderly stop removes the file.
//
//	1 pid   2 data directory   3 start time   4 port   5 socket directory   6 listen address
//	7 key and id of the shared memory segment   8 status: starting, ready, standby, stopping
func (p *Postgres) pidFile() (lines [8]string) {
	text, err := os.ReadFile(filepath.Join(p.DataDir, "postmaster.pid"))
	if err != nil {
		return lines
	}
	for i, line := range strings.Split(string(text), "\n") {
		if i < len(lines) {
			lines[i] = strings.TrimSpace(line)
		}
	}
	return lines
}

// releaseSharedMemory removes the System V segment that a killed server left.
func (p *Postgres) releaseSharedMemory() {
	if fields := strings.Fields(p.pidFile()[6]); len(fields) == 2 {
		if id, err := strconv.Atoi(fields[1]); err == nil {
			removeSharedMemory(id)
		}
	}
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// quoteLiteral quotes for SQL and for postgresql.conf, which double the quote alike. Neither
// gives the backslash a meaning in the values that tests use.
func quoteLiteral(value string) string {
	return "'" + strings.ReplaceAll(value, "'", "''") + "'"
}

// tailError returns the last lines of a server's log as an error, to be joined to what went wrong.
func tailError(path string) error {
	const tailBytes = 4096
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("no log: %w", err)
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return fmt.Errorf("end of %s:\n%s", filepath.Base(path), text)
}
