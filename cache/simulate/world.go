package simulate

import "rankfs/cache/policy"

// A world is the state of a simulation: what ranks read, what is under way, and where everything
// is. What happens in it is told by what is above: caches, fills and the ranks.
type world struct {
	layout
	transfers
	nodes   []node
	readers []reader

	step     int64 // the furthest that was opened
	schedule schedule

	out     Outcome
	epoch   *Epoch
	started float64
}

// work has the rank work on the batch that it has opened.
func (w *world) work(k *reader) {
	b := k.batch(k.at())
	for l := range policy.Levels {
		w.epoch.Uses[l] += b.found[l]
		w.epoch.Bytes[l] += b.from[l]
	}
	seconds := w.s.Step * w.future.share(k.rank, k.at())
	w.epoch.Working += seconds
	w.clock.wake(k.rank, w.clock.now+seconds)
}

// A schedule says when a step will be, as it was thought when levels were chosen:
// what partitions are worth can only be compared on one clock.
type schedule struct {
	at   float64
	step int64
	pace float64 // seconds of a step
}

func (s *schedule) when(step int64) float64 { return s.at + float64(step-s.step)*s.pace }
