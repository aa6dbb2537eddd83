package pool

import (
	"context"
	"time"

	"rankfs/meta/state"
	"rankfs/shuffle/mapfiles"
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
			again = !f.keepStages(ctx, func() []state.PoolStage { return w.config.State.Stages(j.Number) }, w.config.Member.Lasts) || again
		}
		for _, g := range w.config.State.Stages(j.Number) {
			again = w.missed(ctx, j, g) != nil || again
			if f == nil {
				continue
			}
			for _, s := range f.maps.Stores() {
				again = w.sweepMaps(ctx, f.maps, s, g.Number) || again
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
		if w.config.Member.Lasts() != nil {
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
		if f != nil && !f.maps.Lacks(ctx, g.Number, c) {
			continue
		}
		err := w.losses.tell(ctx, j, g, c, func() bool {
			if f := w.has(j.Number); f != nil && !f.maps.Lacks(ctx, g.Number, c) {
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
func (w sweeper) sweepMaps(ctx context.Context, f *mapfiles.Files, in mapfiles.Store, stage uint64) (again bool) {
	names, err := in.MapNames(ctx, stage)
	if err != nil || len(names) == 0 {
		return err != nil
	}
	names = f.Surplus(stage, names, w.own(stage))
	sweep := f.Sweep(in, stage, names)
	free := sweep.Free()
	if len(free) == 0 {
		return len(names) > 0
	}
	if time.Since(w.born) < commitTime || w.Know(ctx) != nil {
		return true
	}
	free = f.Surplus(stage, free, w.own(stage))
	if len(free) > 0 && w.config.Member.Lasts() != nil {
		return true
	}
	for _, name := range free {
		sweep.GiveUp(name)
	}
	return true
}
