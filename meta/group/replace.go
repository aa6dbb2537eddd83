package group

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"rankfs/meta"
	"rankfs/meta/durable"
	"rankfs/meta/trust"
)

// openStore opens the log and the snapshots. If they are damaged, this node
// becomes a new replica of what the others have, under the same id.
func (g *Group) openStore(ctx context.Context, founds bool) (*store, error) {
	alone := len(g.known.list()) == 0
	s, err := openStore(g.config.Dir, g.config.medium, alone, g.config.Log)
	if err == nil && !founds && !alone {
		err = g.missing(s)
	}
	var d damage
	if err == nil || !errors.As(err, &d) {
		return s, err
	}
	if err := g.beginAnew(ctx, d); err != nil {
		return nil, err
	}
	return openStore(g.config.Dir, g.config.medium, alone, g.config.Log)
}

// missing finds out whether a node that was of a cluster has nothing of it. If so
// it closes the store.
func (g *Group) missing(s *store) error {
	began, err := s.began()
	if err == nil && !began {
		err = damage{fmt.Errorf("log %s %w: it is empty", s.log.dir, meta.ErrCorrupt)}
	}
	if err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

// beginAnew has the others let go of the replica that this node was, and sets what
// is left of it aside. In this order: a voter that has forgotten how it voted
// must not vote again.
func (g *Group) beginAnew(ctx context.Context, d damage) error {
	if len(g.known.list()) == 0 {
		return fmt.Errorf("%w: and no other node is known that has what was lost; start this one with another --state "+
			"and create its datasets again; %s is left as it is", d, g.config.Dir)
	}
	g.config.Log.Warn("what this node knows of the cluster cannot be read; it asks the others to have it as a new replica", "cause", d)
	ctx, cancel := context.WithTimeout(ctx, 2*g.times.patience)
	defer cancel()
	if err := g.askRelease(ctx); err != nil {
		return fmt.Errorf("%w: and the others could not be asked for what was lost: %w; try again when a majority of the voters is up, "+
			"or remove this node there (rankfs node rm) and mount with another --state and a token; %s is left as it is", d, err, g.config.Dir)
	}
	aside, err := setAside(g.config.Dir)
	if err != nil {
		return fmt.Errorf("%w: and it cannot be moved away: %w", d, err)
	}
	g.config.Log.Warn("this node gets what it lost from the others; what cannot be read is kept until the next time", "in", aside)
	return nil
}

// askRelease asks until the leader has let go of this node.
func (g *Group) askRelease(ctx context.Context) error {
	for {
		var err error
		if now := g.config.Now(); !now.Before(g.config.Identity.Until()) {
			err = g.renewOnce(ctx)
		}
		if err == nil {
			_, err = g.sayHello(ctx, true)
		}
		if err == nil || errors.Is(err, trust.ErrRemoved) {
			return err
		}
		select {
		case <-time.After(g.times.tick):
		case <-ctx.Done():
			return err
		}
	}
}

// setAside moves the log and the snapshots away, in place of those of the last
// time, and says where to. The log goes first: snapshots that are damaged still
// say so if this is as far as it came.
func setAside(dir string) (string, error) {
	aside := filepath.Join(dir, "damaged")
	err := os.RemoveAll(aside)
	if err == nil {
		err = os.Mkdir(aside, 0o700)
	}
	for _, part := range []string{"log", "snapshots"} {
		if err == nil {
			err = os.Rename(filepath.Join(dir, part), filepath.Join(aside, part))
		}
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	return aside, errors.Join(err, durable.SyncDir(dir))
}
