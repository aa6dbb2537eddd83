package cache

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// An epoch is the readers of one series. The cache's lock guards it.
type epoch struct {
	series  *Series
	readers map[uint64][]*reader // by rank; of one that several jobs read, one for each
	next    *Series              // of the epoch after this one; nil if that is not known
	asked   bool                 // next was asked for
	finding bool                 // a key is being found of what a reader comes to
}

// end is the number of steps that are known: those of the epoch, and of the next one if it is.
func (ep *epoch) end() uint64 {
	if ep.next == nil {
		return ep.series.Steps
	}
	return ep.series.Steps + ep.next.Steps
}

// at is the place of a step that may be beyond the epoch's end.
func (ep *epoch) at(step uint64) (of *Series, s uint64) {
	if steps := ep.series.Steps; step >= steps {
		return ep.next, step - steps
	}
	return ep.series, step
}

// all are the readers.
func (ep *epoch) all() iter.Seq[*reader] {
	return func(yield func(*reader) bool) {
		for _, its := range ep.readers {
			for _, r := range its {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// use is the first use of the batch of k by a reader of ep.
func (ep *epoch) use(k Key, now time.Time) (first use, at time.Time, ok bool) {
	passed := true
	if rank, step, is := ep.series.Find(k); is {
		its := ep.readers[rank]
		first, at, ok = soonestOf(its, step, now)
		passed = !ok || len(its) > 1
	}
	if ep.next == nil || !passed {
		return first, at, ok
	}
	if rank, step, is := ep.next.Find(k); is {
		if u, t, comes := soonestOf(ep.readers[rank], ep.series.Steps+step, now); comes && (!ok || t.Before(at)) {
			first, at, ok = u, t, true
		}
	}
	return first, at, ok
}

// soonestOf is the reader of a rank that comes to a step first, and when.
func soonestOf(its []*reader, step uint64, now time.Time) (first use, at time.Time, ok bool) {
	for _, r := range its {
		if r.Run < trusted || step < r.Pos {
			continue
		}
		if t := r.comes(step, now); !ok || t.Before(at) {
			first, at, ok = use{r, step}, t, true
		}
	}
	return first, at, ok
}

const (

	// gone: a reader beside which another of its rank goes on is no more if it is silent
	// for as long as so many of its steps take, and for goneAfter: it may be that one,
	// which began anew elsewhere. One that has done few steps yet, which may be a chance,
	// is given so many as make a pause.
	gone      = tempoSteps
	goneAfter = time.Second
)

// opener is the reader of a rank that opens a step; nil if none of those that are known
// does, as neither this step nor the one before it, which was opened too, is near theirs.
func (ep *epoch) opener(rank, step, near uint64) *reader {
	its := ep.readers[rank]
	if len(its) == 0 {
		return nil
	}
	best := slices.MinFunc(its, func(a, b *reader) int {
		return cmp.Or(cmp.Compare(a.distance(step, near), b.distance(step, near)), a.seen.Compare(b.seen))
	})
	if (best.distance(step, near) >= none-1 || best.had(step)) && slices.ContainsFunc(its, func(r *reader) bool { return r.others.has(step) }) {
		return nil
	}
	return best
}

// silent are the readers of a rank that are gone beside r.
func (ep *epoch) silent(r *reader, now time.Time) (all []*reader) {
	for _, other := range ep.readers[r.rank] {
		steps := time.Duration(pauses)
		if other.tempo.count >= near {
			steps = gone
		}
		if other != r && now.Sub(other.seen) > steps*other.tempo.mean+goneAfter {
			all = append(all, other)
		}
	}
	return all
}
