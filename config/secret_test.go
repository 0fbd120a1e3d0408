package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const canary = "kanarienvogel"

func TestASecretIsNeverPrinted(t *testing.T) {
	s := NewSecret(canary)
	type hidden struct {
		inner Secret // fmt may call no method of an unexported field
		Outer Secret
		Ptr   *Secret
	}
	h := hidden{s, s, &s}
	var out []string
	for _, v := range []any{s, &s, h, &h, []Secret{s}, map[string]Secret{"a": s}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T", "%p"} {
			out = append(out, fmt.Sprintf(verb, v))
		}
		if b, err := json.Marshal(v); err == nil {
			out = append(out, string(b))
		}
		if b, err := yaml.Marshal(v); err == nil {
			out = append(out, string(b))
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
		out = append(out, log.String())
	}
	hex := fmt.Sprintf("%x", canary)
	for _, text := range out {
		if strings.Contains(text, canary) || strings.Contains(strings.ToLower(text), hex) {
			t.Errorf("printed: %s", text)
		}
	}
	if got := fmt.Sprintf("%v %s %#v", s, s, s); got != "**** **** ****" {
		t.Errorf("printed as %q", got)
	}
	if s.Reveal() != canary || s.IsZero() || !NewSecret("").IsZero() || NewSecret("").String() != "" {
		t.Error("Reveal, IsZero or the empty secret")
	}
}

// Whatever is wrong with a file, neither errors nor warnings repeat a secret.
func TestNoMessageHoldsASecret(t *testing.T) {
	t.Setenv("CANARY", canary)
	const ref = "${env:CANARY}"
	for _, text := range []string{
		withConnector("database.password: " + canary),
		withConnector("database.password: [" + canary + "]"),
		withConnector("database.pasword: " + canary),
		withConnector("database.sslpassword: " + canary),
		withConnector("database.password: " + canary + "\ndatabase.password: " + canary),
		withConnector("database.password: \"" + canary),
		withConnector("database.password: {" + canary + ": [}"),
		withConnector("producer.override.sasl.jaas.config: " + canary),
		withConnector("slot.name: '" + ref + "!'"),
		withConnector("publication.name: '" + strings.Repeat(ref, 9) + "'"),
		withConnector("database.port: " + ref),
		withConnector("snapshot.mode: " + ref),
		withConnector("table.include.list: '" + ref + "('"),
		withConnector("message.key.columns: " + ref),
		withConnector("skipped.operations: " + ref),
		withConnector("name: " + ref),
		withConnector("value.converter: " + ref),
		withConnector("value.converter.schema.registry.url: http://u:" + canary + "@r:1"),
		withWorker("basic.auth.user.info: " + canary),
		withWorker("sasl.jaas.config: " + canary + "\nsecurity.protocol: SASL_SSL"),
		withWorker("bearer.auth.token: " + canary + "\nbasic.auth.user.info: a:" + canary),
		withWorker("http.listen: " + ref),
		withWorker("ssl.truststore.location: /" + ref),
		withWorker("ssl.keystore.password: " + canary),
		withWorker("offset.storage.topic: '" + ref + " '"),
		strings.Replace(minimal, "http://localhost", "ftp://u:"+canary+"@localhost", 1),
		strings.Replace(minimal, "http://localhost", "http://u:"+canary+"@localhost", 1),
		strings.Replace(minimal, "localhost:9092", "u:"+canary+"@localhost", 1),
		strings.Replace(minimal, "hostname: localhost", "hostname: u:"+canary+"@db", 1),
		strings.Replace(minimal, "hostname: localhost", "hostname: '"+ref+" x'", 1),
	} {
		dir := write(t, map[string]string{"t.yaml": text})
		_, warnings, err := Load(filepath.Join(dir, "t.yaml"), nil)
		all := fmt.Sprintf("%v\n%+v\n%v", err, err, warnings)
		if strings.Contains(all, canary) {
			t.Errorf("%s\n%s", text, all)
		}
	}
}
