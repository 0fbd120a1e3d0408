package testenv

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tidemark-cdc/tidemark/testenv/download"
)

// A mavenArtifact is a set of files that Maven fetches: the jars of a server.
type mavenArtifact struct {
	name     string
	pom      string // the <dependencies> of the project, or
	artifact string // the coordinates of one archive
	plugin   string // version of the dependency plugin
	goal     string // of the plugin; it fills outputDirectory
	digest   string // SHA-256 of the manifest of all files: they are the same on every platform
}

var kafkaJars = mavenArtifact{
	name:   "kafka-4.3.1",
	plugin: "3.8.1",
	goal:   "copy-dependencies",
	pom: `
		<dependency><groupId>org.apache.kafka</groupId>
			<artifactId>kafka_2.13</artifactId><version>4.3.1</version></dependency>
		<dependency><groupId>org.apache.kafka</groupId>
			<artifactId>kafka-tools</artifactId><version>4.3.1</version></dependency>
		<dependency><groupId>org.apache.logging.log4j</groupId>
			<artifactId>log4j-slf4j-impl</artifactId><version>2.25.4</version></dependency>
		<dependency><groupId>org.apache.logging.log4j</groupId>
			<artifactId>log4j-core</artifactId><version>2.25.4</version></dependency>`,
	digest: "a7c8fbc79b7ab8219a95b7e610e653396cb75f6a10b2b07a0332c972d3537282",
}

// The registry's archive holds all that it needs, and is fetched as it is. Its pom names a parent
// that is not published: versions 3 of the plugin read it and fail, version 2 does not. But its
// unpack goal cuts long names off, so unpackArchives does that.
var registryJars = mavenArtifact{
	name:     "apicurio-registry-3.0.9",
	plugin:   "2.8",
	goal:     "copy",
	artifact: "io.apicurio:apicurio-registry-app:3.0.9:tar.gz:all",
	digest:   "2eb42ce211d4e17c9eb3f695212ab98cb80198b0accd80ceb3015466ac26901f",
}

const pomText = `<project xmlns="http://maven.apache.org/POM/4.0.0">
	<modelVersion>4.0.0</modelVersion>
	<groupId>tidemark</groupId><artifactId>testenv</artifactId><version>1</version>
	<packaging>pom</packaging>
	<dependencies>%s</dependencies>
	<build><pluginManagement><plugins><plugin>
		<groupId>org.apache.maven.plugins</groupId>
		<artifactId>maven-dependency-plugin</artifactId><version>%s</version>
	</plugin></plugins></pluginManagement></build>
</project>
`

// oldestJava is what Kafka 4's broker and the registry need.
const oldestJava = 17

// installJava is what to do where Java or Maven is missing.
const installJava = `install a Java runtime, version 17 or later, and Maven:
  Debian, Ubuntu:  apt-get install openjdk-17-jre-headless maven
                   (Debian 13 and later: openjdk-21-jre-headless)
  Fedora:          dnf install java-21-openjdk-headless maven
  macOS:           brew install openjdk@17 maven`

// RequireJava fails a test that needs the real servers where Java or Maven is missing, and says what
// to install. It never skips: a stage that is left out must not look like one that passed.
func RequireJava(t T) {
	t.Helper()
	if _, err := javaCommand(); err != nil {
		t.Fatalf("%v", err)
	}
	if _, err := mavenCommand(); err != nil {
		t.Fatalf("%v", err)
	}
}

// javaCommand returns the path of java: of JAVA_HOME where that is set, else of PATH.
func javaCommand() (string, error) {
	path := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		path = filepath.Join(home, "bin", "java")
	}
	path, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("the real servers need Java: %w\n%s", err, installJava)
	}
	out, err := exec.Command(path, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s -version: %w\n%s\n%s", path, err, out, installJava)
	}
	found := regexp.MustCompile(`version "(\d+)`).FindSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("%s -version names no version:\n%s\n%s", path, out, installJava)
	}
	if version, err := strconv.Atoi(string(found[1])); err != nil || version < oldestJava {
		return "", fmt.Errorf("%s is version %s, wanted %d or later\n%s", path, found[1], oldestJava,
			installJava)
	}
	return path, nil
}

func mavenCommand() (string, error) {
	path, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("the jars of the real servers are fetched by Maven: %w\n%s", err,
			installJava)
	}
	return path, nil
}

// fetched remembers what this process has verified already.
var fetched struct {
	sync.Mutex
	dirs map[string]string
}

// fetch returns the directory with the files of a, from the cache where they are there.
func (a mavenArtifact) fetch() (string, error) {
	fetched.Lock()
	defer fetched.Unlock()
	if dir := fetched.dirs[a.name]; dir != "" {
		return dir, nil
	}
	dir, err := download.Tree("maven/"+a.name, a.runMaven)
	if err != nil {
		return "", fmt.Errorf("%s: %w", a.name, err)
	}
	if fetched.dirs == nil {
		fetched.dirs = map[string]string{}
	}
	fetched.dirs[a.name] = dir
	return dir, nil
}

func (a mavenArtifact) runMaven(dir string) error {
	mvn, err := mavenCommand()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "tidemark-maven-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	pom := filepath.Join(work, "pom.xml")
	if err := os.WriteFile(pom, fmt.Appendf(nil, pomText, a.pom, a.plugin), 0o644); err != nil {
		return err
	}
	// --strict-checksums: a download that differs from the repository's checksum fails.
	cmd := exec.Command(mvn, "--batch-mode", "--quiet", "--strict-checksums", "--file", pom,
		"dependency:"+a.goal, "-DoutputDirectory="+dir)
	if a.artifact != "" {
		cmd.Args = append(cmd.Args, "-Dartifact="+a.artifact)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	if err := unpackArchives(dir); err != nil {
		return err
	}
	lines, err := download.Digests(dir)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	if got := hex.EncodeToString(sum[:]); got != a.digest {
		return fmt.Errorf("digest of the %d files is %s, wanted %s", len(lines), got, a.digest)
	}
	return nil
}

// unpackArchives replaces each .tar.gz in dir by the files in it.
func unpackArchives(dir string) error {
	archives, err := filepath.Glob(filepath.Join(dir, "*.tar.gz"))
	if err != nil {
		return err
	}
	for _, path := range archives {
		if err := unpackGzip(path, dir); err != nil {
			return fmt.Errorf("unpack %s: %w", filepath.Base(path), err)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

func unpackGzip(path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	plain, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	return download.Unpack(plain, dir)
}
