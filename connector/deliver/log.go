package deliver

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"
)

// clientLog writes the client's log lines to ours, one level lower than it means them: what it
// calls a warning is mostly a retry, and what matters reaches us as an error.
type clientLog struct{ log *slog.Logger }

var levels = map[kgo.LogLevel]slog.Level{
	kgo.LogLevelError: slog.LevelWarn,
	kgo.LogLevelWarn:  slog.LevelInfo,
	kgo.LogLevelInfo:  slog.LevelDebug,
}

// Level returns what the client needs to format at all.
func (c *clientLog) Level() kgo.LogLevel {
	switch ctx := context.Background(); {
	case c.log.Enabled(ctx, slog.LevelDebug):
		return kgo.LogLevelInfo
	case c.log.Enabled(ctx, slog.LevelInfo):
		return kgo.LogLevelWarn
	case c.log.Enabled(ctx, slog.LevelWarn):
		return kgo.LogLevelError
	}
	return kgo.LogLevelNone
}

// Log writes one line.
func (c *clientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	if l, ok := levels[level]; ok {
		c.log.Log(context.Background(), l, "kafka: "+msg, keyvals...)
	}
}
