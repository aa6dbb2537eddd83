package cache

import "sync"

// workers fill slabs: what opens wait for, then what readers come to. As many are busy as
// fills are worth doing at a time, and one more for a job that has less than its share of
// them; one rests. A worker is one goroutine; it holds the cache's lock while it looks for
// what to do.
type workers struct {
	*maker
	mover *mover
	tasks *sync.WaitGroup // of the cache
}

func (w *workers) work() {
	var on charge
	for {
		e, demanded, now := w.next(on)
		if e == nil {
			return
		}
		w.make(e, demanded)
		on = now
	}
}

// next ends the charge of what was done, and waits for something to do. It returns nil
// when the cache closes, or has enough other workers.
func (w *workers) next(done charge) (e *entry, demanded bool, on charge) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := &w.mu.queue
	q.end(done)
	for waited := done.usage != nil; ; waited = false {
		if w.mu.life.closed {
			return nil, false, on
		}
		if q.workers > w.mu.rates.fills.AtOnce()+1 && q.resting > 0 {
			q.workers--
			q.wake.Signal() // this worker ends: another one takes the task it was woken for
			return nil, false, on
		}
		held := q.held
		e, demanded, on = q.choose(!w.mu.limits.strained)
		w.findKeys()
		if e != nil {
			e.ahead, e.waited = !demanded, waited || held
			w.reinforce()
			return e, demanded, on
		}
		q.resting++
		if len(w.mu.moves.down) > 0 && !q.full() {
			w.mover.wake()
		}
		q.wake.Wait()
		q.resting--
	}
}

// reinforce starts a worker if all are busy and one more is allowed, and wakes one that has nothing
// to do, to look for work that may begin by now. The cache's lock is held.
func (w *workers) reinforce() {
	q := &w.mu.queue
	switch {
	case q.resting == 0 && q.workers <= q.most():
		q.workers++
		w.tasks.Go(w.work)
	case q.held && !q.full():
		q.wake.Signal()
	}
}

// findKeys has the keys found that were not known when the queue chose, which may take a
// while. The cache's lock is held.
func (w *workers) findKeys() {
	for _, b := range w.mu.queue.unknown {
		w.tasks.Go(func() { w.findKey(b) })
	}
	w.mu.queue.unknown = nil
}

// findKey finds the key of a batch that a reader comes to. If it is forgotten again at
// once, or cannot be found, there is nothing to make ready before the reader has moved.
func (w *workers) findKey(b keyless) {
	b.series.Key(b.reader.rank, b.step)
	w.mu.Lock()
	defer w.mu.Unlock()
	b.epoch.finding = false
	if _, known := b.series.Known(b.reader.rank, b.step); !known {
		b.reader.BackOff(b.scan)
	}
	w.mu.queue.wake.Signal()
}
