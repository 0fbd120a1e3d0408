package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// repository is the root of the tree, seen from this package.
const repository = "../.."

// composeProject loads docker-compose.yml with the compose specification's own library.
func composeProject(t *testing.T) *types.Project {
	t.Helper()
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "docker-compose.yml")
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: root, ConfigFiles: []types.ConfigFile{{Filename: file}},
		Environment: types.Mapping{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// TestComposeFile holds what a `docker compose up` would stumble over, since no Docker runs here.
func TestComposeFile(t *testing.T) {
	project := composeProject(t)
	want := []string{"console", "load", "postgres", "redpanda", "tidemark"}
	names := project.ServiceNames()
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Fatalf("services %v, want %v", names, want)
	}
	pinned := regexp.MustCompile(`:v?[0-9]+\.[0-9]+(\.[0-9]+)?$`)
	for name, service := range project.Services {
		if service.Build == nil && !pinned.MatchString(service.Image) {
			t.Errorf("%s: image %q names no version", name, service.Image)
		}
		for _, volume := range service.Volumes {
			if volume.Type == types.VolumeTypeBind {
				readable(t, name, volume.Source)
			}
		}
		for _, secret := range service.Secrets {
			readable(t, name, project.Secrets[secret.Source].File)
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %d is published on %q", name, port.Target, port.HostIP)
			}
		}
		for other, dependency := range service.DependsOn {
			if dependency.Condition == types.ServiceConditionHealthy &&
				project.Services[other].HealthCheck == nil {
				t.Errorf("%s waits for the health of %s, which has no check", name, other)
			}
		}
	}
	if b := project.Services["tidemark"].Build; b == nil {
		t.Error("tidemark is not built from the tree")
	} else {
		readable(t, "tidemark", filepath.Join(b.Context, b.Dockerfile))
	}
}

// readable fails when a file that a container mounts is not there for the container's user, who is
// not its owner.
func readable(t *testing.T, service, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Errorf("%s: %v", service, err)
		return
	}
	if info.Mode().Perm()&0o044 != 0o044 {
		t.Errorf("%s: %s is not readable for others: %s", service, path, info.Mode())
	}
}

// composeConfig loads the mounted configuration with the real loader; its secrets come from where
// the compose file mounts them from.
func composeConfig(t *testing.T, project *types.Project) *config.File {
	t.Helper()
	service := project.Services["tidemark"]
	var text string
	for _, volume := range service.Volumes {
		if volume.Target == "/etc/tidemark/tidemark.yaml" {
			b, err := os.ReadFile(volume.Source)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
	}
	for _, secret := range service.Secrets {
		text = strings.ReplaceAll(text, "${file:/run/secrets/"+secret.Source+":",
			"${file:"+project.Secrets[secret.Source].File+":")
	}
	file := filepath.Join(t.TempDir(), "tidemark.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, warnings, err := config.Load(file, nil)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, warnings %v", err, warnings)
	}
	return settings
}

func TestComposeConfiguration(t *testing.T) {
	project := composeProject(t)
	settings := composeConfig(t, project)
	c := settings.Connectors[0]
	for _, host := range []string{
		c.Database.Host, strings.Split(settings.Worker.Kafka.Bootstrap[0], ":")[0],
	} {
		if _, ok := project.Services[host]; !ok {
			t.Errorf("the configuration names the host %q, which is no service", host)
		}
	}
	if !slices.Equal(settings.Worker.Registry.URLs, []string{"http://redpanda:8081"}) {
		t.Errorf("registry %v", settings.Worker.Registry.URLs)
	}
	password, err := os.ReadFile(project.Secrets["tidemark_password"].File)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Database.Password.Reveal(); got == "" || got != strings.TrimSpace(string(password)) {
		t.Errorf("the password that arrives has %d characters", len(got))
	}
	_, port, _ := strings.Cut(settings.Worker.HTTPListen, ":")
	check := project.Services["tidemark"].HealthCheck
	if port != "8083" || check == nil ||
		!slices.Equal(check.Test, []string{"CMD", "/usr/local/bin/tidemark", "health"}) {
		t.Errorf("port %s, health check %v; health asks port 8083 by default", port, check)
	}
	docker, err := os.ReadFile(filepath.Join(repository, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"      -o /out/usr/local/bin/tidemark ./cmd/tidemark",
		"COPY --from=build /out/ /",
		`CMD ["run", "-c", "/etc/tidemark/tidemark.yaml"]`,
	} {
		if !strings.Contains(string(docker), line+"\n") {
			t.Errorf("the Dockerfile has no line %s", line)
		}
	}
}

// TestComposeScripts runs the SQL of the compose file's database and load on a real server, and
// then `explain` with the mounted configuration's tables as the role that they make.
func TestComposeScripts(t *testing.T) {
	project := composeProject(t)
	settings := composeConfig(t, project)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pg, err := testenv.StartPostgres(ctx, testenv.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close()
	run := func(sql string) {
		t.Helper()
		if err := pg.Exec(ctx, "postgres", sql); err != nil {
			t.Fatalf("%v, in\n%s", err, sql)
		}
	}
	script := func(name string) string {
		b, err := os.ReadFile(filepath.Join(repository, "deploy/compose", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	role := script("postgres/1-role.sh")
	begin := strings.Index(role, "CREATE ROLE")
	end := strings.LastIndex(role, "SQL\n")
	run(strings.ReplaceAll(role[begin:end], ":'password'", "'pw'"))
	run(script("postgres/2-shop.sql"))
	for range 3 {
		for _, statement := range strings.Split(script("load/load.sql"), ";\n") {
			run(statement)
		}
	}
	c := settings.Connectors[0]
	pg.User, pg.Password = c.Database.User, "pw"
	file := commandConfig(t, pg, "    table.include.list: public.customers, public.orders, "+
		"public.carts\n")
	status, out, errs := command(t, "explain", "-c", file)
	if status != 0 || strings.Contains(out, "not in it yet") ||
		strings.Count(out, "\n  topic ") != 3 {
		t.Errorf("exit %d\n%s%s", status, out, errs)
	}
}
