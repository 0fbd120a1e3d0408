// Package consume reads topics back: for tail, the demo's output and verify.
//
// A Reader reads partitions in their order, decodes keys and values with the schemas that the
// registry has for their ids (goavro is the codec of record), and gives each record as a Message.
// It never guesses: bytes that are not in the registry's wire format, or do not fit their schema,
// are in the Message with a sentence that says so, and reading goes on.
//
//	reader.go    topics, partitions, where to begin and to end
//	decode.go    wire format, one decoder a schema id
//	shape.go     a schema as a tree: what goavro's native values mean, fields in their order
//	message.go   Message, and Event, the view of an envelope
//	json.go      a Message as a line of JSON
//	render.go    a Message for a person
package consume
