package cache

import (
	"math"
	"time"

	"rankfs/cache/fair"
)

// A coming is a reader that comes to a batch, at which of its steps: in this epoch,
// or in the one after it.
type coming struct {
	reader *reader
	step   uint64
}

// A course is when a reader comes to which step, as it was reckoned once: one a
// tick. Its batches are in order by it, which is right among themselves however
// the reader goes on; to compare them with others', see reader.comes.
type course struct {
	from time.Time
	step int64 // that it opened then; below zero: of the epoch before
	tick time.Duration
}

func (c course) at(step uint64) time.Time {
	return c.from.Add(time.Duration(int64(step)-c.step) * c.tick)
}

// A tempo is a reader's mean time from one step to the next.
type tempo struct {
	mean  time.Duration
	count int // of steps, up to tempoSteps
}

const (
	// tempoSteps is over how many steps a tempo goes: a reader that becomes
	// faster or slower is known by it after about as many.
	tempoSteps = 64

	// pauses: a step that takes longer than so many tempos is a pause, such as
	// at the end of an epoch, and says little of what comes after it.
	pauses = 4
)

func (t *tempo) add(took time.Duration) {
	if t.count >= pauses {
		took = min(took, pauses*t.mean+1)
	}
	t.count = min(t.count+1, tempoSteps)
	t.mean += (took - t.mean) / time.Duration(t.count)
}

// comes is when r comes to a step: as long after its last open as it takes for so
// many steps. One that is late comes to all of them later. mu is held.
func (r *reader) comes(step uint64, now time.Time) time.Time {
	ahead := time.Duration(int64(step) - int64(r.pos))
	at, late := r.seen.Add((ahead+1)*r.tempo.mean), now.Add(ahead*r.tempo.mean)
	if late.After(at) {
		return late
	}
	return at
}

// set reckons the course anew. mu is held.
func (r *reader) set(now time.Time) {
	r.course = course{r.comes(r.pos, now), int64(r.pos), r.tempo.mean}
}

// comesTo says who of j comes to the batch of k. mu is held.
func (j *job) comesTo(k Key) (who coming, ok bool) {
	if rank, step, is := j.plan.Find(k); is {
		if r := j.readers[rank]; r != nil && r.run >= trusted && step >= r.pos {
			return coming{r, step}, true
		}
	}
	if j.next == nil {
		return who, false
	}
	if rank, step, is := j.next.Find(k); is {
		if r := j.readers[rank]; r != nil && r.run >= trusted {
			return coming{r, j.plan.Steps() + step}, true
		}
	}
	return who, false
}

// comesTo reports whether any reader comes to the batch of k. mu is held.
func (rs *readers) comesTo(k Key) bool {
	_, _, ok := rs.soonest(k, time.Now())
	return ok
}

// soonest says who comes to the batch of k first, and when. What was learnt of a
// reader's ways is believed before what its last opens look like. mu is held.
func (rs *readers) soonest(k Key, now time.Time) (who coming, at time.Time, ok bool) {
	who, at, ok = rs.traces.soonest(k, now)
	for _, j := range rs.jobs {
		if w, is := j.comesTo(k); is && !rs.traces.foretells(j.plan, w.reader.rank) {
			if t := w.reader.comes(w.step, now); !ok || t.Before(at) {
				who, at, ok = w, t, true
			}
		}
	}
	return who, at, ok
}

// nextUse is when k will be opened again, as far as anybody can know: when a
// reader comes to it, in this epoch or the next one; or else, if it was used
// before, after as long as it took last time. mu is held.
func (ev *eviction) nextUse(k *kept, now time.Time) float64 {
	if _, at, ok := ev.readers.soonest(k.key, now); ok {
		return ev.time.seconds(at)
	}
	return ev.guess(k)
}

func (ev *eviction) guess(k *kept) float64 {
	if k.gap > 0 && !ev.readers.traces.done(k.key) {
		return ev.time.seconds(k.last) + k.gap.Seconds()
	}
	return math.Inf(1)
}

// wanted is when e will be opened: before anything that was guessed, if an open
// waits for it. mu is held.
func (ev *eviction) wanted(e *entry, now time.Time) float64 {
	if e.waiters > 0 {
		return 0
	}
	return ev.nextUse(&e.kept, now)
}

// place is where k is laid on the shelf: in the lane of who comes to it first. mu
// is held.
func (ev *eviction) place(k *kept) place {
	who, _, ok := ev.readers.soonest(k.key, time.Now())
	if !ok {
		return place{ev.readers.tenants.lane(k.plan), ev.worthAt(k, ev.guess(k))}
	}
	return place{who.reader.lane, ev.worthAt(k, ev.time.seconds(who.reader.course.at(who.step)))}
}

// mistakes is how many batches at the begin of a lane are looked at that are in
// the wrong one: their readers left or went elsewhere since they were laid there.
const mistakes = 8

// least is what is to go first of all that nobody holds, for what a plan brings, its
// worth as of now, and the claim on it; 0 if there is nothing. mu is held.
func (ev *eviction) least(p Plan, now time.Time) (id uint32, worth float64, claim fair.Claim) {
	ev.weigh()
	for lane := maxLanes - 1; lane >= 0; lane-- { // what is mistaken goes to the first
		n, its, ok := ev.leastIn(uint8(lane), now)
		if !ok {
			continue
		}
		k := ev.slabs.idle.at(n)
		if on := ev.claim(&k, p); id == 0 || on < claim || on == claim && its < worth {
			id, worth, claim = n, its, on
		}
	}
	return id, worth, claim
}

func (ev *eviction) leastIn(lane uint8, now time.Time) (id uint32, worth float64, ok bool) {
	o := &ev.slabs.idle.lanes[lane]
	for range mistakes {
		if o.count == 0 {
			return 0, 0, false
		}
		id, worth = o.least()
		k := ev.slabs.idle.at(id)
		who, at, comes := ev.readers.soonest(k.key, now)
		switch {
		case comes && who.reader.lane == lane:
			return id, ev.worthAt(&k, ev.time.seconds(at)), true
		case !comes && lane == ev.readers.tenants.lane(k.plan):
			return id, worth, true
		}
		ev.slabs.idle.rank(id, ev.place(&k))
	}
	return id, worth, o.count > 0
}

// restart reckons anew when readers come to what they read. mu is held.
func (rs *readers) restart(now time.Time) {
	for _, j := range rs.jobs {
		for _, r := range j.readers {
			r.set(now)
		}
	}
	for _, r := range rs.traces.routes {
		r.set(now)
	}
}

// reorder puts what is idle in order by that. Until it is done a lane is in the
// order of before and of now, which differ by how much readers went off course.
func (pl *planning) reorder() {
	pl.mu.walk(func(id uint32) bool {
		if pl.mu.slabs.idle.isSpent(id) {
			return true
		}
		k := pl.mu.slabs.idle.at(id)
		if pl.mu.eviction.displaced(&k) {
			pl.mu.moves.down = append(pl.mu.moves.down, id)
		}
		pl.mu.slabs.idle.rank(id, pl.mu.eviction.place(&k))
		return true
	})
}

// laneFor is a lane of its own for a reader of j, as far as there are any; or that
// of another reader, best of its job. mu is held.
func (rs *readers) laneFor(j *job) uint8 {
	var used [maxLanes]int
	for _, other := range rs.jobs {
		for _, r := range other.readers {
			if used[r.lane]++; other != j {
				used[r.lane]++
			}
		}
	}
	for _, r := range rs.traces.routes {
		used[r.lane] += 2
	}
	for _, y := range rs.tenants.of {
		used[y.lane] += 2
	}
	best := uint8(1)
	for lane := uint8(1); lane < maxLanes; lane++ {
		if used[lane] < used[best] || used[lane] == used[best] && rs.slabs.idle.lanes[lane].count < rs.slabs.idle.lanes[best].count {
			best = lane
		}
	}
	return best
}
