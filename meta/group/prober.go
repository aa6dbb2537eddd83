package group

import (
	"context"
	"slices"
	"time"
)

// maxLooks bounds how many nodes are asked at once.
const maxLooks = 32

// A prober asks nodes whether they are there now, whatever is known of them from before.
type prober struct {
	config *Config
	calls  *calls
}

// at asks one node.
func (l *prober) at(ctx context.Context, id string) (p heartbeat, err error) {
	if id == l.config.Self.ID {
		return l.config.heartbeat(), nil
	}
	err = l.calls.ask(ctx, id, callHeartbeat, struct{}{}, &p)
	return p, err
}

// silent asks some voters, again and again, until so many have answered as are enough. It
// returns those that have not; after times.look at the latest, if they are too many.
func (l *prober) silent(ctx context.Context, ids []string, enough int) []string {
	ctx, cancel := context.WithTimeout(ctx, l.config.times.look)
	defer cancel()
	answers := make(chan string, len(ids)) // empty from a voter that has not answered
	for _, id := range ids {
		go func() { answers <- l.await(ctx, id) }()
	}
	silent := slices.Clone(ids)
	for range ids {
		id := <-answers
		silent = slices.DeleteFunc(silent, func(s string) bool { return s == id })
		if len(ids)-len(silent) >= enough {
			cancel()
		}
	}
	return silent
}

// await asks a node until it answers, or ctx is done.
func (l *prober) await(ctx context.Context, id string) (answered string) {
	for {
		if _, err := l.at(ctx, id); err == nil {
			return id
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(l.config.times.pause):
		}
	}
}

// heartbeat is the heartbeat of a node that is there.
func (c *Config) heartbeat() heartbeat {
	return heartbeat{Speaks: c.Machine.Speaks(), Applied: c.Machine.Summary().Applied, Signs: c.Authority.CanSign(), Clock: c.Now().UnixNano()}
}
