package cache

import (
	"slices"
	"time"

	"rankfs/meta"
)

const (
	shortageWait = time.Second // how long an open goes without room before that is looked into, and how often
	shortageTell = time.Minute // how often it is reported, and how long the most that was lacking counts, and a refusal
)

// roomQueue has the fills that wait for memory, in order of arrival, and knows which
// opens have it.
//
// Ranks that compute with a batch and ranks that hold one for good look alike, so a
// wait goes on as long as any wait; the shortage is only reported. But a thread that
// waits in an open cannot close what it has: if all of memory is of such threads, the
// wait is refused. The cache's lock guards it.
type roomQueue struct {
	config *Config
	slabs  *slabs
	queue  *queue
	fills  []*entry         // no more than workers
	token  chan struct{}    // one: a slab was given back, or may have been
	opens  map[int32]*entry // what threads wait for
	last   Shortage
	seen   time.Time // when last was so
	told   time.Time
	lacked Shortage // the most that was lacking in a while, however short the waits were
	when   time.Time
	looked time.Time // when that was last looked for
}

// A holding is a batch that is open in a thread that waits in another open.
type holding struct {
	thread     int32
	rank, step uint64
	bytes      int64
	wants      *entry
}

// join has a fill wait for room.
func (rm *roomQueue) join(e *entry) {
	if !slices.Contains(rm.fills, e) {
		rm.fills = append(rm.fills, e)
	}
}

// leave has a fill wait for room no more.
func (rm *roomQueue) leave(e *entry) {
	if i := slices.Index(rm.fills, e); i >= 0 {
		rm.fills = slices.Delete(rm.fills, i, i+1)
	}
}

// given tells a fill that waits that a slab was given back.
func (rm *roomQueue) given() {
	select {
	case rm.token <- struct{}{}:
	default:
	}
}

// overtakes reports whether a fill is about to take room that the fill of an earlier
// open waits for. An earlier fill that needs more than this one has to wait for more
// anyway: the batches that it waits for may need this one first. An input never
// overtakes: it serves a fill that already has its room.
func (rm *roomQueue) overtakes(e *entry) bool {
	if e.series.Shared {
		return false
	}
	for _, o := range rm.fills {
		if o == e {
			return false
		}
		if o.waiters > 0 && meta.WholePages(o.size) <= meta.WholePages(e.size) {
			return true
		}
	}
	return false
}

// waits notes which entry a thread waits for, if the thread is known.
func (rm *roomQueue) waits(thread int32, e *entry) {
	if thread != 0 {
		rm.opens[thread] = e
	}
}

func (rm *roomQueue) waitsNoMore(thread int32) { delete(rm.opens, thread) }

// shortage describes the room that the fill of an entry lacks, if ranks have the memory or
// there is no file, what is held by threads that wait, and whether it is to be reported.
func (rm *roomQueue) shortage(e *entry, mapped int64, now time.Time) (short *Shortage, waiting []holding, tell bool) {
	short, waiting = rm.held(e, mapped)
	if !short.NoFile && short.Held+meta.WholePages(e.size) <= short.Memory {
		return nil, nil, false
	}
	if tell = rm.told.IsZero() || now.Sub(rm.told) >= shortageTell; tell {
		rm.told = now
	}
	rm.last, rm.seen = *short, now
	return short, waiting, tell
}

// held describes the memory that opens have while the fill of an entry finds no room, what they
// wait for beside it, and what of the former is held by threads that wait.
func (rm *roomQueue) held(e *entry, mapped int64) (short *Shortage, waiting []holding) {
	short = &Shortage{Series: e.series, Held: mapped, Size: e.size, Memory: rm.config.RAMBytes, NoFile: lacksFiles(e.stalled)}
	stalled := rm.stalled()
	for _, h := range rm.slabs.entries {
		if h.holders == 0 || !h.inMemory() {
			continue
		}
		short.Batches, short.Held = short.Batches+1, short.Held+meta.WholePages(h.size)
		for _, thread := range h.threads {
			wants := rm.opens[thread]
			if wants == nil || wants.state != filling || !stalled(wants) {
				continue
			}
			if rank, step, ok := h.series.Find(h.key); ok {
				waiting = append(waiting, holding{thread, rank, step, meta.WholePages(h.size), wants})
				break
			}
		}
	}
	for _, o := range rm.fills {
		short.Asked += meta.WholePages(o.size)
	}
	if len(rm.fills) >= rm.config.Workers { // those that are queued wait for the same; each as much, or so
		short.Asked += int64(rm.queue.length) * meta.WholePages(e.size)
	}
	return short, waiting
}

// recent is the shortage that there is now, or was a moment ago; nil if there is none. That
// a batch is too large for all room counts for longer.
func (rm *roomQueue) recent(now time.Time) *Shortage {
	last, counts := rm.last, 2*shortageWait
	if last.TooLarge {
		counts = shortageTell
	}
	if rm.seen.IsZero() || now.Sub(rm.seen) >= counts {
		return nil
	}
	return &last
}

// keeps is the shortage for which an entry is not ready, as its fill waits for memory, or
// for a worker while those wait for it; nil if there is none.
func (rm *roomQueue) keeps(e *entry, now time.Time) *Shortage {
	short := rm.recent(now)
	if short == nil || short.TooLarge || e.stalled == nil && !rm.queue.demands(e) {
		return nil
	}
	short.Series, short.Size = e.series, e.size
	return short
}

// due reports whether it is time to look what is lacking: that goes through all entries.
func (rm *roomQueue) due(now time.Time) bool {
	if !rm.looked.IsZero() && now.Sub(rm.looked) < shortageWait {
		return false
	}
	rm.looked = now
	return true
}

// lacks notes what is lacking while the fill of an entry waits for memory.
func (rm *roomQueue) lacks(e *entry, mapped int64, now time.Time) {
	short, _ := rm.held(e, mapped)
	if now.Sub(rm.when) >= shortageTell || short.Held+short.Asked >= rm.lacked.Held+rm.lacked.Asked {
		rm.lacked, rm.when = *short, now
	}
}

// stalled says which entries wait for memory: those whose fills do, and those that are
// queued while all workers wait for it.
func (rm *roomQueue) stalled() func(*entry) bool {
	queued, starved := make(map[*entry]bool), 0
	for e := range rm.queue.demanded() {
		queued[e] = true
	}
	for _, e := range rm.slabs.entries {
		if e.state == filling && e.stalled != nil && !queued[e] {
			starved++
		}
	}
	return func(e *entry) bool { return e.stalled != nil || queued[e] && starved >= rm.config.Workers }
}
