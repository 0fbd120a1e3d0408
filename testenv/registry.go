package testenv

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// RegistryOptions say how a real registry differs from the usual one.
type RegistryOptions struct {
	HeapMB        int    // 0 is 384
	Compatibility string // the global level; "" is BACKWARD, which is Confluent's
}

// A Registry is an Apicurio schema registry as a process of its own. Its Confluent API has a path, as
// some users' registries do. Its methods may be called from several goroutines.
type Registry struct {
	URL     string // with the path
	LogFile string

	dir, java, jars string
	port            int
	options         RegistryOptions

	mu      sync.Mutex
	process *process
	closed  bool
}

const (
	registryReadyAfter = 3 * time.Minute // 5 s on an idle machine
	registryPath       = "/apis/ccompat/v7"
)

// StartRegistry starts a registry and returns when it answers. The caller closes it. The first call
// downloads 108 MB.
func StartRegistry(ctx context.Context, o RegistryOptions) (*Registry, error) {
	if o.HeapMB == 0 {
		o.HeapMB = 384
	}
	if o.Compatibility == "" {
		o.Compatibility = "BACKWARD"
	}
	java, err := javaCommand()
	if err != nil {
		return nil, err
	}
	jars, err := registryJars.fetch()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := newRunDir("registry")
	if err != nil {
		return nil, err
	}
	r := &Registry{
		URL:     fmt.Sprintf("http://127.0.0.1:%d%s", port, registryPath),
		LogFile: filepath.Join(dir, "server.log"),
		dir:     dir, java: java, jars: jars, port: port, options: o,
	}
	if err := r.Start(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	// Set by the API: the start-up property of that name is not what GET /config answers.
	body := fmt.Sprintf(`{"compatibility": %q}`, o.Compatibility)
	if err := r.request(ctx, http.MethodPut, "/config", body); err != nil {
		return nil, errors.Join(fmt.Errorf("set the registry's level: %w", err), r.Close())
	}
	return r, nil
}

// Start starts the registry again after Stop or Kill, on the same port and with what it held, and
// waits until it answers. It does nothing while the registry runs.
func (r *Registry) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errors.New("the registry is closed")
	}
	if r.process != nil && r.process.alive() {
		return nil
	}
	log, err := os.OpenFile(r.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd := exec.Command(r.java, fmt.Sprintf("-Xmx%dm", r.options.HeapMB), "-XX:+UseSerialGC",
		"-XX:TieredStopAtLevel=1", // it starts in half the time; nothing is measured with it
		"-Dquarkus.http.host=127.0.0.1", fmt.Sprintf("-Dquarkus.http.port=%d", r.port),
		// Later releases answer health checks on a port of their own, on all interfaces by default.
		"-Dquarkus.management.host=127.0.0.1", "-Dquarkus.management.port=0",
		// The default is a database in memory, which would not outlive a kill.
		"-Dapicurio.datasource.url=jdbc:h2:file:"+filepath.Join(r.dir, "data", "registry"),
		"-jar", filepath.Join(r.jars, "apicurio-registry-app-3.0.9-runner.jar"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, log, log
	if r.process, err = startProcess(cmd, r.dir, syscall.SIGKILL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, registryReadyAfter)
	defer cancel()
	if err := r.awaitReady(ctx); err != nil {
		return fmt.Errorf("the registry did not start: %w\n%w", err, tailError(r.LogFile))
	}
	return nil
}

func (r *Registry) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := r.request(ctx, http.MethodGet, "/subjects", "")
		if err == nil {
			return nil
		}
		select {
		case <-r.process.done:
			return fmt.Errorf("the registry ended: %w", r.process.err)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// request sends a request on a connection of its own.
func (r *Registry) request(ctx context.Context, method, path, body string) error {
	req, err := http.NewRequestWithContext(ctx, method, r.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: status %s", method, req.URL, answer.Status)
	}
	return nil
}

// Stop shuts the registry down and waits; when ctx ends first it is killed.
func (r *Registry) Stop(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return nil
	}
	return r.process.stop(ctx, syscall.SIGTERM)
}

// Kill ends the registry with SIGKILL and returns when it is gone.
func (r *Registry) Kill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return nil
	}
	return r.process.kill()
}

// Close ends the registry and removes its files. It may be called again.
func (r *Registry) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	return errors.Join(r.Kill(), removeRunDir(r.dir))
}
