package group

import (
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// hclogger passes Raft's messages on. What of them is worth telling a person
// this package tells again, shorter; so they are for debugging, but for errors
// that only Raft knows of, as of its disk.
func hclogger(l *slog.Logger) hclog.Logger {
	intercept := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Debug, Output: io.Discard})
	intercept.RegisterSink(sink{l})
	return intercept
}

// A sink is the end of an hclog.Logger that is an slog.Logger.
type sink struct{ log *slog.Logger }

func (s sink) Accept(name string, level hclog.Level, message string, args ...any) {
	if level == hclog.Error && !usual[message] {
		s.log.Warn("raft: "+message, args...)
		return
	}
	s.log.Debug("raft: "+message, args...)
}

// usual are errors to Raft and not to a person: that a connection ended, which
// its other end knows more of, and that a snapshot has to wait a little.
var usual = map[string]bool{
	"failed to decode incoming command": true,
	"failed to take snapshot":           true,
	"failed to commit logs":             true, // told as a disk that is full
	"failed to get log":                 true, // a follower so far behind gets a snapshot
	"failed to flush response":          true,
	"failed to heartbeat to":            true, // told as a node that is down
	"failed to appendEntries to":        true,
	"failed to contact":                 true,
	"failed to make requestVote RPC":    true,
	"failed to pipeline appendEntries":  true,
}
