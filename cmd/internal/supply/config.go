package supply

import (
	"log/slog"
	"time"
)

// A Config says which pairs serve which directory.
type Config struct {
	Maps    string        // file that lists one mapped file a line; line i is rank i's
	Pipes   string        // file that lists one named pipe a line
	Ranks   string        // those to serve, as 0,4-7; the lists may be theirs alone; empty: all
	Batches string        // directory of rank-N/batch-KKKKKK, as MOUNT/datasets/NAME
	Once    bool          // end when each rank has had its last batch
	Timeout time.Duration // of each wait for a client or a batch; 0 is a minute
	Log     *slog.Logger  // nil discards
}

// withDefaults: a minute outlasts a batch that comes from a slow source, and
// is short enough for a job that was killed and started again by its queue.
func (c Config) withDefaults() Config {
	if c.Timeout <= 0 {
		c.Timeout = time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
