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

// A recovery opens what this node has on disk; and if that is damaged, has the others let
// go of the replica that this node was, so that it becomes a new one, under the same id,
// of what they have. All of it is over before Raft runs.
type recovery struct {
	config      *Config
	directory   *directory
	greeter     *greeter
	certificate *certificate
}

// openStore opens the log and the snapshots.
func (r *recovery) openStore(ctx context.Context, founds bool) (*store, error) {
	alone := len(r.directory.list()) == 0
	s, err := openStore(r.config.Dir, r.config.medium, alone, r.config.Log)
	if err == nil && !founds && !alone {
		err = r.missing(s)
	}
	var d damage
	if err == nil || !errors.As(err, &d) {
		return s, err
	}
	if err := r.beginAnew(ctx, d); err != nil {
		return nil, err
	}
	return openStore(r.config.Dir, r.config.medium, alone, r.config.Log)
}

// missing finds out whether a node that was of a cluster has nothing of it. If so
// it closes the store.
func (r *recovery) missing(s *store) error {
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
func (r *recovery) beginAnew(ctx context.Context, d damage) error {
	if len(r.directory.list()) == 0 {
		return fmt.Errorf("%w: and no other node is known that has what was lost; start this one with another --state "+
			"and create its datasets again; %s is left as it is", d, r.config.Dir)
	}
	r.config.Log.Warn("what this node knows of the cluster cannot be read; it asks the others to have it as a new replica", "cause", d)
	ctx, cancel := context.WithTimeout(ctx, 2*r.config.times.patience)
	defer cancel()
	if err := r.askRelease(ctx); err != nil {
		return fmt.Errorf("%w: and the others could not be asked for what was lost: %w; try again when a majority of the voters is up, "+
			"or remove this node there (rankfs node rm) and mount with another --state and a token; %s is left as it is", d, err, r.config.Dir)
	}
	aside, err := setAside(r.config.Dir)
	if err != nil {
		return fmt.Errorf("%w: and it cannot be moved away: %w", d, err)
	}
	r.config.Log.Warn("this node gets what it lost from the others; what cannot be read is kept until the next time", "in", aside)
	return nil
}

// askRelease asks until the leader has let go of this node.
func (r *recovery) askRelease(ctx context.Context) error {
	for {
		var err error
		if r.certificate.hasExpired() {
			err = r.certificate.renew(ctx, r.certificate.reissue)
		}
		if err == nil {
			err = r.sayLost(ctx)
		}
		if err == nil || errors.Is(err, trust.ErrRemoved) {
			return err
		}
		select {
		case <-time.After(r.config.times.tick):
		case <-ctx.Done():
			return err
		}
	}
}

// sayLost tells the leader that this node's log is lost; it is an error that the others
// still count on that.
func (r *recovery) sayLost(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.times.look)
	defer cancel()
	h := hello{Addr: r.config.Self.Addr, Life: r.config.Self.Life, Deaf: true, Lost: true}
	_, err := r.greeter.greet(ctx, h, r.greeter.others(nil))
	return err
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
