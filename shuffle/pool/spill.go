package pool

import (
	"cmp"
	"context"
	"path"
	"slices"
	"time"

	"rankfs/meta/state"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/mapfiles"
)

// A spill moves maps from memory to the disk.
type spill struct {
	*copies
	moving chan struct{} // has one while maps are moved
	warned time.Time     // while that is held: when it was said that none can be
}

// follow relieves memory whenever it was seen to be full.
func (s *spill) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.budget.Full():
			s.relieve(ctx)
			sleep(ctx, relieveTime)
		}
	}
}

// relieveTime is how long memory of which nothing can be moved is left alone.
const relieveTime = 100 * time.Millisecond

// relieve moves committed maps to the disk, those of the oldest stages first, if memory is
// full: so writers go on. A caller that comes meanwhile waits.
func (s *spill) relieve(ctx context.Context) {
	if !s.full() {
		return
	}
	select {
	case s.moving <- struct{}{}:
		defer func() { <-s.moving }()
	case <-ctx.Done():
		return
	}
	if !s.full() {
		return
	}
	for _, m := range s.movable(ctx) {
		if ctx.Err() != nil || s.roomy() {
			return
		}
		err := s.move(ctx, m)
		if err == nil {
			continue
		}
		if time.Since(s.warned) > disk.SuspendTime {
			s.warned = time.Now()
			s.config.Log.Warn("memory of the shuffle pool stays full", "map", m.is.Map, "cause", err)
		}
		return
	}
}

// full reports whether memory is to be relieved, roomy whether it was enough.
func (s *spill) full() bool  { return s.disk != nil && s.budget.Over() }
func (s *spill) roomy() bool { return s.budget.Roomy() }

// A movable is a committed map that is in memory.
type movable struct {
	files *files
	stage uint64
	is    state.Commit
}

func (s *spill) movable(ctx context.Context) (all []movable) {
	self := s.config.Cluster.Self()
	for _, f := range s.all() {
		for _, g := range s.config.State.Stages(f.number) {
			names, _ := f.maps.Memory().MapNames(ctx, g.Number)
			for _, name := range names {
				number, is := mapfiles.NumberOf(name)
				c, ok := s.config.State.Commit(g.Number, number)
				if is && ok && slices.Contains(c.Nodes, self) && path.Base(mapfiles.Path(g.Number, c)) == name {
					all = append(all, movable{f, g.Number, c})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b movable) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.is.Map, b.is.Map))
	})
	return all
}

// move has a map on the disk instead of in memory.
func (s *spill) move(ctx context.Context, m movable) error {
	defer m.files.Expect(mapfiles.Path(m.stage, m.is))()
	if err := m.files.maps.MoveToDisk(ctx, m.stage, m.is); err != nil {
		return s.suspect(ctx, m.files, m.stage, m.is, err)
	}
	return nil
}
