package fs

import (
	"context"
	"log"
	"log/slog"
)

// newLogger passes what the FUSE library has to say on to our log.
func newLogger(l *slog.Logger) *log.Logger {
	if l == nil || !l.Enabled(context.Background(), slog.LevelDebug) {
		l = slog.New(slog.DiscardHandler)
	}
	return slog.NewLogLogger(l.Handler(), slog.LevelDebug)
}
