package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// run is one measured run of something.
type run struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds,omitempty"`
	RSS     int64   `json:"peak_rss_bytes,omitempty"`
	Started float64 `json:"started_after_seconds,omitempty"`
	IdleCPU float64 `json:"idle_cpu_seconds,omitempty"`
	Checked int     `json:"checked_records,omitempty"` // by the checker; 0: it did not look
}

// process runs a program and returns what the kernel says of it.
func process(cmd *exec.Cmd) (run, error) {
	began := time.Now()
	err := cmd.Run()
	r := run{Seconds: time.Since(began).Seconds()}
	if cmd.ProcessState != nil {
		if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			r.CPU = float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
			r.RSS = u.Maxrss * 1024
		}
	}
	return r, err
}

// recvlogical finds the server's own client; "" when there is none.
func recvlogical() string {
	if path, err := exec.LookPath("pg_recvlogical"); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_recvlogical")
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// baseline reads a slot to its end with the server's own client, into /dev/null; program "" is the
// reader in Go.
func baseline(
	ctx context.Context, pg *testenv.Postgres, p prepared, slot, program string,
) (run, error) {
	var said bytes.Buffer
	var cmd *exec.Cmd
	if program != "" {
		cmd = exec.CommandContext(ctx, program, "--start", "-S", slot, "-f", "/dev/null", "--no-loop",
			"-o", "proto_version=1", "-o", "publication_names="+p.publication, "--endpos", p.end,
			"-h", pg.Host, "-p", fmt.Sprint(pg.Port), "-U", pg.User, "-d", database)
		cmd.Env = append(os.Environ(), "PGPASSWORD="+pg.Password)
	} else {
		cmd = exec.CommandContext(ctx, os.Args[0], "reader")
		spec, err := json.Marshal(readerJob{
			URL: pg.URL(database), Slot: slot, Publication: p.publication, Until: p.end,
		})
		if err != nil {
			return run{}, err
		}
		cmd.Stdin = bytes.NewReader(spec)
	}
	cmd.Stderr = &said
	r, err := process(cmd)
	if err != nil {
		return r, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, said.String())
	}
	return r, nil
}

// decoding is the server's own decoding, without a network and without an output.
func decoding(ctx context.Context, pg *testenv.Postgres, p prepared) (run, error) {
	began := time.Now()
	_, err := scalar(ctx, pg, fmt.Sprintf(`SELECT count(*)::text FROM
		pg_logical_slot_peek_binary_changes('%s', '%s', NULL, 'proto_version', '1',
		'publication_names', '%s')`, p.slot, p.end, p.publication))
	return run{Seconds: time.Since(began).Seconds()}, err
}

// copyOut is `\copy table to /dev/null`, without psql.
func copyOut(ctx context.Context, pg *testenv.Postgres, table string) (run, error) {
	conn, err := pg.Connect(ctx, database)
	if err != nil {
		return run{}, err
	}
	defer func() { _ = conn.Close(ctx) }() // read only
	began := time.Now()
	_, err = conn.PgConn().CopyTo(ctx, io.Discard, "COPY "+table+" TO STDOUT")
	return run{Seconds: time.Since(began).Seconds()}, err
}

// spawn runs a job in a process of its own.
func spawn(ctx context.Context, j job) (run, error) {
	spec, err := json.Marshal(j)
	if err != nil {
		return run{}, err
	}
	cmd := exec.CommandContext(ctx, os.Args[0], "child")
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(spec), &out, &said
	r, err := process(cmd)
	if err != nil {
		log, _ := os.ReadFile(j.Log)
		return r, fmt.Errorf("connector: %w: %s\n%s", err, said.String(), tail(string(log), 20))
	}
	var res result
	if err := json.Unmarshal(out.Bytes(), &res); err != nil {
		return r, err
	}
	return run{
		Seconds: res.Seconds, CPU: res.CPU, RSS: res.RSS, Started: res.Started,
		IdleCPU: res.IdleCPU, Checked: res.Checked,
	}, nil
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
