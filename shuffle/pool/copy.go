package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/placement"
)

// copyTime is how long a commit looks for nodes that take its copies. How long one may
// take to begin, or to go on, is for package wire to say: as long as it goes on it is
// waited for, however large the map is.
const copyTime = 10 * time.Second

// copy makes copies of an attempt, as many as its spec wants or as there are hosts, and
// enters them into its commit: the first on this node, or with place=ring where the name
// of the map says, as all others are. The first is made while others are. A guest has none.
func (p peers) copy(ctx context.Context, g stage, is state.PoolStage, c *state.Commit, s *sealing) error {
	if is.Spec.Ring || p.config.Guest {
		return p.copyToOthers(ctx, g, is, c, s)
	}
	commit := *c
	c.Nodes = append(c.Nodes, c.Writer)
	if is.Spec.Copies == 1 {
		return p.copyTo(ctx, c.Writer, is, commit, s)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var first sync.WaitGroup
	var failed error
	first.Go(func() {
		if failed = p.copyTo(ctx, commit.Writer, is, commit, s); failed != nil {
			stop()
		}
	})
	err := p.copyToOthers(ctx, g, is, c, s)
	first.Wait()
	return cmp.Or(failed, err)
}

// copyTo makes one copy: on this node the file is given the name of the map.
func (p peers) copyTo(ctx context.Context, node string, is state.PoolStage, c state.Commit, s *sealing) error {
	if node == c.Writer {
		return s.name(ctx, c, is.Spec.Durable)
	}
	return p.sendCopy(ctx, node, is, c, sent{table: s.table, bytes: s.joined(), ahead: s.ahead})
}

// copyToOthers makes the copies that the commit does not have yet. A node that takes none is
// left out, and the next is asked, as long as copyTime is not over; with fewer copies than are
// wanted a strict stage goes no further.
func (p peers) copyToOthers(ctx context.Context, g stage, is state.PoolStage, c *state.Commit, s *sealing) error {
	nodes := p.config.Nodes()
	choose := s.chooser(g, is, c, nodes)
	var failed []error
	asked := false // this node, as one of the ring
	for begun := time.Now(); len(c.Nodes) < is.Spec.Copies && (failed == nil || time.Since(begun) < copyTime); {
		var ask []string
		for _, id := range choose(nodes) {
			if !slices.Contains(c.Nodes, id) && len(c.Nodes)+len(ask) < is.Spec.Copies {
				ask = append(ask, id)
			}
		}
		if len(ask) == 0 {
			break
		}
		asked = asked || slices.Contains(ask, c.Writer)
		errs := each(ask, func(id string) error { return p.copyTo(ctx, id, is, *c, s) })
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, id := range ask {
			if errs[i] == nil {
				c.Nodes = append(c.Nodes, id)
				continue
			}
			failed = append(failed, fmt.Errorf("node %s: %w", id, errs[i]))
			nodes = slices.DeleteFunc(slices.Clone(nodes), func(n placement.Node) bool { return n.ID == id })
		}
	}
	if len(c.Nodes) == 0 && p.config.Guest {
		return meta.Worded(meta.ErrUnavailable, "this node keeps nothing of the shuffle pool, as --pool-ram is 0, and no other takes a copy; rename it once more when one is up that has room: %w",
			cmp.Or(errors.Join(failed...), errors.New("none has something for the pool")))
	}
	if len(c.Nodes) == 0 && asked {
		return errors.Join(failed...)
	}
	if len(c.Nodes) == 0 { // no node of the ring takes one
		if err := p.copyTo(ctx, c.Writer, is, *c, s); err != nil {
			return errors.Join(append(failed, err)...)
		}
		c.Nodes = append(c.Nodes, c.Writer)
	}
	if missing := is.Spec.Copies - len(c.Nodes); missing > 0 && is.Spec.Strict {
		return meta.Worded(meta.ErrUnavailable, "%d of %d copies cannot be made, and the spec has strict=1: %w", missing, is.Spec.Copies,
			cmp.Or(errors.Join(failed...), errors.New("there are no more hosts that have something for the pool")))
	}
	if len(failed) > 0 {
		said := "nodes have not taken a copy of a map of the shuffle pool, which others have"
		if len(c.Nodes) < is.Spec.Copies {
			said = "a map of the shuffle pool has fewer copies than it should, for now"
		}
		p.config.Log.Warn(said, "stage", g.path(), "map", c.Map, "copies", len(c.Nodes), "wanted", is.Spec.Copies, "cause", errors.Join(failed...))
	}
	return nil
}

// chooser chooses the nodes of the copies from some: with place=ring by the name of the
// map, else in turn, and those first to which the attempt went ahead.
func (s *sealing) chooser(g stage, is state.PoolStage, c *state.Commit, nodes []placement.Node) func([]placement.Node) []string {
	switch {
	case is.Spec.Ring:
		key := placement.Key(g.job.Name, g.name, c.Map)
		return func(nodes []placement.Node) []string { return placement.Choose(key, is.Spec.Copies, "", nodes) }
	case s.ahead.went(is):
		return s.ahead.copies.choose
	}
	return s.files.spread.next(g.job.Name, is, c.Writer, nodes).choose
}
