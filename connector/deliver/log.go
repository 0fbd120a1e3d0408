package deliver

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
)

// clientLog writes the client's log lines to ours, one level lower than it means them: what it
// calls a warning is mostly a retry, and what matters reaches us as an error.
//
// It is also the one place where the client tells, before it goes on, that it has given a written
// batch up: it then numbers the next batch under a new epoch, and says so. Promises run on another
// goroutine and may be late; in between, a record of the same partition could be written though
// one before it was not. newEpoch runs on the goroutine that is about to write, and ends the
// context that the client looks at next. TestF24NothingIsWrittenBehindAFailedBatch holds this.
//
// And it is where the client tells that brokers refuse its login or it their certificate: it asks
// again without end. refused gets such an error, whatever the line. TestF30 holds this.
type clientLog struct {
	log      *slog.Logger
	newEpoch func()
	refused  func(error)
}

// newEpochLine is how the client announces it (kgo, producer.go, producerID).
const newEpochLine = "locally bumping idempotent producer epoch to recover from " +
	"a prior produce error"

// flushingLine is what the client says of each Flush.
const flushingLine = "flushing"

var levels = map[kgo.LogLevel]slog.Level{
	kgo.LogLevelError: slog.LevelWarn,
	kgo.LogLevelWarn:  slog.LevelInfo,
	kgo.LogLevelInfo:  slog.LevelDebug,
}

// Level returns the least level that newEpochLine needs; nothing below is of use.
func (c *clientLog) Level() kgo.LogLevel { return kgo.LogLevelInfo }

// Log writes one line.
func (c *clientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	if msg == newEpochLine {
		c.newEpoch()
	}
	if msg == flushingLine {
		return // Hurry has it written for each row that comes alone
	}
	for _, v := range keyvals {
		if err, ok := v.(error); ok && kafkadial.Refused(err) {
			c.refused(err)
		}
	}
	if l, ok := levels[level]; ok {
		c.log.Log(context.Background(), l, "kafka: "+msg, keyvals...)
	}
}
