// Package avrocompat says whether one Avro schema may follow another, for the registry in the
// process (testenv.FakeRegistryOptions.Compatible). It stands apart from testenv because of what it
// imports: the demo compiles testenv, and has no use for a second Avro implementation.
package avrocompat

import (
	"errors"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/sr"
)

// Check compares two schemas: BACKWARD means that a reader with the next one can read what was
// written with the last, FORWARD the reverse, FULL both. reason is nil where they are compatible; err
// is of a schema that is none. An empty last is no schema: next is parsed only.
func Check(level sr.CompatibilityLevel, next, last string) (reason, err error) {
	reader, err := parse(next)
	if err != nil || last == "" {
		return nil, err
	}
	writer, err := parse(last)
	if err != nil {
		return nil, err
	}
	check := avro.NewSchemaCompatibility()
	switch level {
	case sr.CompatBackward, sr.CompatBackwardTransitive, sr.CompatFull, sr.CompatFullTransitive:
		reason = check.Compatible(reader, writer)
	}
	switch level {
	case sr.CompatForward, sr.CompatForwardTransitive, sr.CompatFull, sr.CompatFullTransitive:
		reason = errors.Join(reason, check.Compatible(writer, reader))
	}
	return reason, nil
}

// parse uses a cache of its own: versions of one record have the same name.
func parse(text string) (avro.Schema, error) {
	return avro.ParseBytesWithCache([]byte(text), "", &avro.SchemaCache{})
}
