package testenv

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ConnectOptions say what a Kafka Connect worker runs.
type ConnectOptions struct {
	Bootstrap string            // the brokers, parted by commas
	HeapMB    int               // 0 is 2048, which connect-standalone.sh gives it
	Worker    map[string]string // lines of the worker's file, over ours
	Connector map[string]string // those of the connector
}

var connectJars = mavenArtifact{
	name:   "connect-4.3.1",
	plugin: "3.8.1",
	goal:   "copy-dependencies",
	pom: `
		<dependency><groupId>org.apache.kafka</groupId>
			<artifactId>connect-runtime</artifactId><version>4.3.1</version></dependency>
		<dependency><groupId>org.apache.kafka</groupId>
			<artifactId>connect-json</artifactId><version>4.3.1</version></dependency>
		<dependency><groupId>org.apache.kafka</groupId>
			<artifactId>connect-transforms</artifactId><version>4.3.1</version></dependency>
		<dependency><groupId>org.apache.logging.log4j</groupId>
			<artifactId>log4j-slf4j-impl</artifactId><version>2.25.4</version></dependency>
		<dependency><groupId>org.apache.logging.log4j</groupId>
			<artifactId>log4j-core</artifactId><version>2.25.4</version></dependency>`,
	digest: "480894e92075dfb899d523314eebc28e4738c6cc797abef8ab0b5e478e0247d0",
}

// notInPlugins are those that the worker has and a plug-in must not bring.
const notInPlugins = `<exclusions>
			<exclusion><groupId>org.apache.kafka</groupId>
				<artifactId>kafka-clients</artifactId></exclusion>
			<exclusion><groupId>org.apache.kafka</groupId>
				<artifactId>connect-api</artifactId></exclusion></exclusions>`

var debeziumJars = mavenArtifact{
	name:   "debezium-postgres-3.6.1",
	plugin: "3.8.1",
	goal:   "copy-dependencies",
	pom: `
		<dependency><groupId>io.debezium</groupId>
			<artifactId>debezium-connector-postgres</artifactId><version>3.6.1.Final</version>
			` + notInPlugins + `</dependency>`,
	digest: "0940073da2db07fb8764fadc0d31c78ec654ce16478a0533714acb0182226b12",
}

var avroConverterJars = mavenArtifact{
	name:   "apicurio-converter-2.6.13",
	plugin: "3.8.1",
	goal:   "copy-dependencies",
	pom: `
		<dependency><groupId>io.apicurio</groupId>
			<artifactId>apicurio-registry-utils-converter</artifactId>
			<version>2.6.13.Final</version>
			` + notInPlugins + `</dependency>`,
	digest: "fc47c3adbe08e48b64afb19923124a4f0175926aa3617304fe2dd88b1e5d00fc",
}

// StartConnect starts Kafka Connect 4.3.1, standalone, with Debezium 3.6.1 and Apicurio's Avro
// converter as plug-ins, and does not wait for it. The caller closes it. The first call downloads
// 90 MB.
func StartConnect(o ConnectOptions) (*Program, error) {
	java, err := javaCommand()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, a := range []mavenArtifact{connectJars, debeziumJars, avroConverterJars} {
		dir, err := a.fetch()
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	if o.HeapMB == 0 {
		o.HeapMB = 2048
	}
	return StartProgram("connect", func(dir string) (*exec.Cmd, error) {
		worker := map[string]string{
			"bootstrap.servers":            o.Bootstrap,
			"listeners":                    fmt.Sprintf("http://127.0.0.1:%d", port),
			"offset.storage.file.filename": filepath.Join(dir, "offsets"),
			"plugin.path":                  filepath.Join(dir, "plugins"),
			"plugin.discovery":             "hybrid_warn", // the converter has no service file
		}
		maps.Copy(worker, o.Worker)
		if err := connectFiles(dir, dirs[1:], worker, o.Connector); err != nil {
			return nil, err
		}
		// The flags are those of connect-standalone.sh.
		return exec.Command(java, "-Xms256m", fmt.Sprintf("-Xmx%dm", o.HeapMB), "-server",
			"-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
			"-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
			"-Dlog4j2.configurationFile="+filepath.Join(dir, "log4j2.xml"),
			"-cp", filepath.Join(dirs[0], "*"), "org.apache.kafka.connect.cli.ConnectStandalone",
			"worker.properties", "connector.properties"), nil
	})
}

// connectFiles writes what a worker starts from: plugins are directories with a plug-in's jars.
func connectFiles(dir string, plugins []string, worker, connector map[string]string) error {
	if err := os.Mkdir(filepath.Join(dir, "plugins"), 0o755); err != nil {
		return err
	}
	for _, plugin := range plugins {
		link := filepath.Join(dir, "plugins", filepath.Base(plugin))
		if err := os.Symlink(plugin, link); err != nil {
			return err
		}
	}
	write := func(name string, settings map[string]string) error {
		var lines []string
		for _, key := range sortedKeys(settings) {
			// In a file of Java's properties a backslash is written twice.
			lines = append(lines, key+"="+strings.ReplaceAll(settings[key], `\`, `\\`))
		}
		return os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	}
	return errors.Join(write("worker.properties", worker),
		write("connector.properties", connector),
		os.WriteFile(filepath.Join(dir, "log4j2.xml"), []byte(logConfiguration), 0o644))
}
