package cache

import (
	"context"
	"errors"
	"time"

	"rankfs/meta/stall"
)

// make fills e and publishes it, or its failure, to the opens that wait.
func (m *maker) make(e *entry, demanded bool) {
	start := time.Now()
	err := m.fill(e, demanded)
	m.finish(e, err, time.Since(start), demanded)
	if e.prefetchFor != nil && err != nil && !errors.Is(err, errNoRoom) && !errors.Is(err, context.Canceled) {
		m.config.Log.Debug("batch not made ready ahead", "rank", e.rank, "step", e.step, "cause", err)
	}
}

// fillFromSlot has an open fill its entry from a slot itself: it takes less than telling
// a worker. It reports whether there was room for that; if not, workers go on.
func (m *maker) fillFromSlot(e *entry) bool {
	start := time.Now()
	err := m.fillRAM(e, true)
	m.finish(e, err, time.Since(start), true)
	return err == nil
}

// finish ends a fill. One that found no room is queued again if an open has come
// meanwhile that may find some.
func (m *maker) finish(e *entry, err error, took time.Duration, demanded bool) {
	e.clock.Enter(stall.Admission) // from here on an open that waits, waits for a processor
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.count.FillTime += took
	if errors.Is(err, errNoRoom) && e.waiters > 0 && m.retries(e, demanded) {
		m.mu.queue.requeue(e)
		return
	}
	e.clock = nil
	if err != nil {
		m.mu.fail(e, err)
	} else {
		if !e.began.IsZero() { // without the wait for room
			took = time.Since(e.began)
		}
		m.mu.publish(e, took)
	}
	close(e.done)
	m.mu.queue.wake.Signal()
}
