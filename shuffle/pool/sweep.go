package pool

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"rankfs/meta/state"
	"rankfs/shuffle/access"
)

// A sweeper gives up files that are needed no more, once the removal is on the disk: else a
// power failure could undo the removal, and leave a name without what it stands for.
type sweeper struct {
	*local
	losses *losses
	born   time.Time
}

// sweep gives up the files of jobs, stages and maps that are no more, and says which
// copies are lost. What is here was agreed on before it came, but for copies of maps that
// are being committed: so what is here is always listed before what is agreed on.
func (w sweeper) sweep(ctx context.Context) (again bool) {
	have, jobs, again := w.sweepJobs()
	for _, j := range jobs {
		f := have[j.Number]
		if f != nil {
			again = !f.keepStages(ctx, func() []state.PoolStage { return w.config.State.Stages(j.Number) }, w.config.Cluster.Lasts) || again
		}
		for _, g := range w.config.State.Stages(j.Number) {
			again = w.missed(ctx, j, g) != nil || again
			if f == nil {
				continue
			}
			for _, s := range f.stores() {
				again = w.sweepMaps(ctx, &f.mapFiles, s, g.Number) || again
			}
		}
	}
	return again
}

// sweepJobs gives up the files of jobs that are no more, and returns those that there are.
func (w sweeper) sweepJobs() (have map[uint64]*files, jobs map[uint64]state.PoolJob, again bool) {
	again = w.disk != nil && w.disk.DropAgain()
	have, jobs = w.made(), make(map[uint64]state.PoolJob)
	for _, j := range w.config.State.PoolJobs() {
		jobs[j.Number] = j
	}
	for number, f := range have {
		if _, ok := jobs[number]; ok {
			continue
		}
		if w.config.Cluster.Lasts() != nil {
			again = true
			continue
		}
		again = !w.end(number, f) || again
	}
	return have, jobs, again
}

// leave gives up all files: a node that was removed is asked for none of them, and
// never hears when its jobs end.
func (w sweeper) leave() {
	for number, f := range w.made() {
		w.end(number, f)
	}
}

// missed says which copies that this node should have it has not: memory does not
// outlive a host.
func (w sweeper) missed(ctx context.Context, j state.PoolJob, g state.PoolStage) error {
	own := w.own(g.Number)
	f := w.has(j.Number) // after what is agreed on, which files are made before
	for c := range own {
		if f != nil && !f.lacks(ctx, g.Number, c) {
			continue
		}
		err := w.losses.tell(ctx, j, g, c, func() bool {
			if f := w.has(j.Number); f != nil && !f.lacks(ctx, g.Number, c) {
				return false
			}
			w.losses.missing(j, g, c)
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepMaps gives up what this node has of maps that were never agreed on, or that it
// need not have. A commit may be on its way for as long as commits take, also one that
// an earlier daemon of this node took its copy of; so before anything goes, the cluster
// is asked.
func (w sweeper) sweepMaps(ctx context.Context, f *mapFiles, in store, stage uint64) (again bool) {
	names, err := in.names(ctx, path.Join(stageDir(stage), mapsDir))
	if err != nil {
		return true
	}
	names = w.surplus(f, names, stage)
	here := in.count(stage, names)
	free := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return in.expects(stage, name, here) })
	if len(free) == 0 {
		return len(names) > 0
	}
	if time.Since(w.born) < commitTime || w.Know(ctx) != nil {
		return true
	}
	free = w.surplus(f, free, stage)
	if len(free) > 0 && w.config.Cluster.Lasts() != nil {
		return true
	}
	for _, name := range free {
		in.giveUp(stage, name, here)
		f.forget(mapFile(stage, name))
	}
	return true
}

// surplus are the names of those files of maps that this node need not have.
func (w sweeper) surplus(f *mapFiles, names []string, stage uint64) (all []string) {
	if len(names) == 0 {
		return nil
	}
	keep := make(map[string]bool)
	for c := range w.own(stage) {
		keep[path.Base(mapPath(stage, c))] = true
	}
	for _, name := range names {
		if keep[mapOf(name)] {
			f.Agreed(mapFile(stage, name))
		}
		if !keep[mapOf(name)] || strings.HasSuffix(name, incoming) {
			all = append(all, name)
		}
	}
	return all
}

// mapOf is the map of which a name in its directory is: of its bytes, its table, or one of
// them that is not whole.
func mapOf(name string) string {
	fields := strings.SplitN(name, ".", 5)
	return strings.Join(fields[:min(4, len(fields))], ".")
}

func mapFile(stage uint64, name string) string {
	return path.Join(stageDir(stage), mapsDir, mapOf(name))
}

// count is the number of these names that each file has, by its inode.
func (s store) count(stage uint64, names []string) map[uint64]uint64 {
	here := make(map[uint64]uint64)
	if s.disk != nil {
		return here
	}
	for _, name := range names {
		if info, err := s.Lstat(path.Join(stageDir(stage), mapsDir, name)); err == nil {
			here[inode(info)]++
		}
	}
	return here
}

// expects reports whether a file may come to be one of a map that is agreed on: it is being
// written, its commit was on its way lately, or it has a name elsewhere, by which it may be
// committed again.
func (s store) expects(stage uint64, name string, here map[uint64]uint64) bool {
	return s.used.Look(func(h access.Held) bool { return s.expected(h, stage, name, here) })
}

func (s store) expected(h access.Held, stage uint64, name string, here map[uint64]uint64) bool {
	own := mapFile(stage, name)
	if strings.HasSuffix(name, incoming) {
		return h.Used(path.Join(path.Dir(own), name))
	}
	if h.Expected(own) || s.disk != nil { // where files have one name
		return h.Expected(own)
	}
	info, err := s.Lstat(own)
	return err == nil && links(info) > max(1, here[inode(info)])
}

// giveUp removes a file, unless that has changed meanwhile.
func (s store) giveUp(stage uint64, name string, here map[uint64]uint64) {
	own := mapFile(stage, name)
	s.used.GiveUp(own, func(h access.Held) bool { return s.expected(h, stage, name, here) }, func() { s.remove(path.Join(path.Dir(own), name)) })
}
