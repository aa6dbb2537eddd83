package cache

import (
	"context"
	"errors"
	"sync"
	"time"

	"rankfs/cache/stall"
)

// workers fill slabs: what opens wait for, then what readers come to. There are as
// many of them as fills are worth doing at a time. A worker is one goroutine; it holds
// the cache's lock while it looks for what to do and while it publishes what it did.
type workers struct {
	*tiers
	mu        *guarded
	admission *admission
	store     *store
	mover     *mover
	ctx       context.Context
	tasks     *sync.WaitGroup // of the cache
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
		if e, demanded := w.mu.queue.choose(!w.mu.strained); e != nil {
			if !demanded {
				w.mu.count.prefetched++
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

// make fills e and publishes it, or its failure, to the opens that wait.
func (w *workers) make(e *entry, demanded bool) {
	start := time.Now()
	err := w.fill(e, demanded)
	w.finish(e, err, time.Since(start), demanded)
	if e.prefetchFor != nil && err != nil && !errors.Is(err, errNoRoom) && !errors.Is(err, context.Canceled) {
		w.config.Log.Debug("batch not made ready ahead", "rank", e.rank, "step", e.step, "cause", err)
	}
}

// unpool has an open fill its entry from a slot itself: it takes less than telling
// a worker. It reports whether there was room for that; if not, workers go on.
func (w *workers) unpool(e *entry) bool {
	start := time.Now()
	err := w.fillRAM(e, true)
	w.finish(e, err, time.Since(start), true)
	return err == nil
}

// finish ends a fill. One that found no room is queued again if an open has come
// meanwhile that may find some.
func (w *workers) finish(e *entry, err error, took time.Duration, demanded bool) {
	e.clock.Enter(stall.Admission) // from here on an open that waits, waits for a processor
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.count.fillTime += took
	e.usage.end += took
	if errors.Is(err, errNoRoom) && e.waiters > 0 && w.retries(e, demanded) {
		w.mu.queue.requeue(e)
		return
	}
	e.clock = nil
	if err != nil {
		w.mu.fail(e, err)
	} else {
		w.mu.publish(e, took)
	}
	close(e.done)
	w.mu.queue.wake.Signal()
}
