package device

import (
	"context"
	"log"
	"log/slog"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// OpPoll is the number of POLL in the protocol. For the queues, package fs has such requests
// come to the method for LSEEK, of both trees.
const OpPoll = 40

// Options are how the FUSE library serves either tree, which adds what is for it alone.
func Options(l *slog.Logger) *fuse.MountOptions {
	return &fuse.MountOptions{
		Name: name, FsName: name,
		MaxWrite:             maxRead,
		MaxBackground:        64,
		IgnoreSecurityLabels: true,
		Logger:               newLogger(l),
	}
}

// newLogger passes the FUSE library's messages on to the daemon's log.
func newLogger(l *slog.Logger) *log.Logger {
	if l == nil || !l.Enabled(context.Background(), slog.LevelDebug) {
		l = slog.New(slog.DiscardHandler)
	}
	return slog.NewLogLogger(l.Handler(), slog.LevelDebug)
}
