package cache

import "sync"

// workers fill slabs: what opens wait for, then what readers come to. There are as
// many of them as fills are worth doing at a time. A worker is one goroutine; it holds
// the cache's lock while it looks for what to do.
type workers struct {
	*maker
	mover *mover
	tasks *sync.WaitGroup // of the cache
}

func (w *workers) work() {
	for {
		e, demanded := w.next()
		if e == nil {
			return
		}
		w.make(e, demanded)
	}
}

// next waits for something to do. It returns nil when the cache closes, or has enough
// other workers.
func (w *workers) next() (e *entry, demanded bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for waited := true; ; waited = false {
		if w.mu.closed {
			return nil, false
		}
		if w.mu.queue.workers > w.mu.rates.fills.AtOnce() {
			w.mu.queue.workers--
			w.mu.queue.wake.Signal() // this worker ends: another one takes the task it was woken for
			return nil, false
		}
		e, demanded := w.mu.queue.choose(!w.mu.strained)
		w.findKeys()
		if e != nil {
			if !demanded {
				w.mu.count.Prefetched++
			}
			if e.waited = waited; waited {
				w.reinforce()
			}
			return e, demanded
		}
		w.mu.queue.resting++
		if len(w.mu.moves.down) > 0 {
			w.mover.wake()
		}
		w.mu.queue.wake.Wait()
		w.mu.queue.resting--
	}
}

// reinforce has one more worker, if all are busy and more should be. The cache's lock
// is held.
func (w *workers) reinforce() {
	if w.mu.queue.resting == 0 && w.mu.queue.workers < w.mu.rates.fills.AtOnce() {
		w.mu.queue.workers++
		w.tasks.Go(w.work)
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
