package fs

import (
	"context"
	"log"
	"log/slog"
)

// newLogger passes the FUSE library's messages on to the daemon's log.
func newLogger(l *slog.Logger) *log.Logger {
	if l == nil || !l.Enabled(context.Background(), slog.LevelDebug) {
		l = slog.New(slog.DiscardHandler)
	}
	return slog.NewLogLogger(l.Handler(), slog.LevelDebug)
}
