package consume

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/linkedin/goavro/v2"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Schemas gives a schema's text by its id; schema/registry's Client is one. An error with the code
// registry_unreachable or authentication_failed ends reading, any other is the record's.
type Schemas interface {
	SchemaByID(ctx context.Context, id int) (string, error)
}

// decoders holds one decoder for each schema id that was seen.
type decoders struct {
	schemas Schemas
	byID    map[int]*decoder
}

type decoder struct {
	codec *goavro.Codec
	shape *shape
}

// errFormat is what a Message says of bytes that are not in Confluent's wire format.
var errFormat = errors.New("not in the registry's wire format (a zero byte, then a schema id)")

// decode turns the bytes of a key or a value into a plain value (see Field). Bytes that are JSON
// and not Avro come back as json.RawMessage. ended is an error that ends reading.
func (d *decoders) decode(ctx context.Context, b []byte) (v any, id int, err, ended error) {
	if b == nil {
		return nil, 0, nil, nil
	}
	if len(b) < 5 || b[0] != 0 {
		if json.Valid(b) {
			return json.RawMessage(b), 0, nil, nil
		}
		return nil, 0, errFormat, nil
	}
	id = int(binary.BigEndian.Uint32(b[1:5]))
	dec, err := d.of(ctx, id)
	if err != nil {
		code := fault.CodeOf(err)
		if code == fault.RegistryUnreachable || code == fault.AuthenticationFailed ||
			ctx.Err() != nil {
			return nil, id, nil, err
		}
		return nil, id, err, nil
	}
	native, rest, err := dec.codec.NativeFromBinary(b[5:])
	if err != nil {
		// goavro's text may quote the value
		return nil, id, fmt.Errorf("the bytes do not fit schema %d", id), nil
	}
	if len(rest) > 0 {
		return nil, id, fmt.Errorf("%d bytes more than schema %d takes", len(rest), id), nil
	}
	v, err = dec.shape.plain(native)
	return v, id, err, nil
}

func (d *decoders) of(ctx context.Context, id int) (*decoder, error) {
	if dec := d.byID[id]; dec != nil {
		return dec, nil
	}
	text, err := d.schemas.SchemaByID(ctx, id)
	if err != nil {
		return nil, err
	}
	dec := new(decoder)
	if dec.codec, err = goavro.NewCodec(text); err != nil {
		return nil, fmt.Errorf("schema %d: %w", id, err)
	}
	if dec.shape, err = parseShape(text); err != nil {
		return nil, fmt.Errorf("schema %d: %w", id, err)
	}
	d.byID[id] = dec
	return dec, nil
}

// message decodes a record.
func (d *decoders) message(ctx context.Context, rec *kgo.Record) (*Message, error) {
	m := &Message{
		Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Time: rec.Timestamp.UTC(),
		KeyBytes: rec.Key, ValueBytes: rec.Value,
	}
	var ended error
	if m.Key, m.KeyID, m.KeyErr, ended = d.decode(ctx, rec.Key); ended != nil {
		return nil, ended
	}
	if m.Value, m.ValueID, m.ValueErr, ended = d.decode(ctx, rec.Value); ended != nil {
		return nil, ended
	}
	for _, h := range rec.Headers {
		m.Headers = append(m.Headers, Header{Key: h.Key, Value: headerText(h.Value), Raw: h.Value})
		if h.Key == headerKeyNew || h.Key == headerKeyOld {
			if m.OtherKey, _, _, ended = d.decode(ctx, h.Value); ended != nil {
				return nil, ended
			}
		}
	}
	return m, nil
}
