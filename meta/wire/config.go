package wire

import (
	"context"
	"log/slog"
	"net"
	"time"
)

// A Dial connects to a node; both ends authenticate themselves.
type Dial func(ctx context.Context, node string) (net.Conn, error)

// Connections is the number of connections to one node if nothing else is said: one fills a wire of
// 1 Gbit/s, and so little is lost by a slow one.
const Connections = 4

// A Config says how a Client asks. What is zero gets its default.
type Config struct {
	// Conns are the connections to one node, and so the pulls from it that
	// are under way at once; and beside them as many as there are Pushes.
	Conns  int
	Pushes int
	// Wait is how long a request waits for one of them.
	Wait time.Duration
	// Idle connections are closed.
	Idle time.Duration
	Dial time.Duration // for a connection
	// Silence is how long a node may say nothing at all. It says every
	// few seconds that it is at work.
	Silence time.Duration
	// Source is how long it may be at work without sending data, or taking
	// any: it may have to fetch a chunk, or to make room. A Feed that has
	// none for so long is given up, too.
	Source time.Duration
	Beat   time.Duration // between signs of life while a Feed has no data

	BackOff    time.Duration // from a node that failed three times in a row, doubled
	BackOffMax time.Duration // up to this

	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	span := func(p *time.Duration, d time.Duration) {
		if *p == 0 {
			*p = d
		}
	}
	if c.Conns == 0 {
		c.Conns = Connections
	}
	if c.Pushes == 0 {
		c.Pushes = Connections
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	span(&c.Wait, 5*time.Second)
	span(&c.Idle, 30*time.Second)
	span(&c.Dial, 5*time.Second)
	span(&c.Silence, 10*time.Second)
	span(&c.Source, 30*time.Second)
	span(&c.Beat, 3*time.Second) // a third of a Server's patience
	span(&c.BackOff, 5*time.Second)
	span(&c.BackOffMax, time.Minute)
	return c
}

func (c *Config) patience() patience {
	return patience{frame: c.Silence, take: c.Source, beat: c.Beat, nothing: c.Source}
}
