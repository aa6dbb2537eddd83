package disks

import (
	"sync"
	"time"

	"rankfs/meta"
)

// An operation is a run of system calls that a disk may never answer.
//
// While the lock is held bytes are copied to the caller's memory: once the operation is
// given up nothing writes there.
type operation struct {
	mu              sync.Mutex
	steps           int
	ended, forsaken bool
}

// alive is a sign of life. It reports whether the caller still waits for the operation.
func (op *operation) alive() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.steps++
	return !op.forsaken
}

// give copies bytes to the caller's memory, and reports whether the caller still
// waits for the operation: if not, that memory may have another use by now.
func (op *operation) give(to, from []byte) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if !op.forsaken {
		copy(to, from)
	}
	return !op.forsaken
}

// end ends the operation, and reports whether the caller waited to the end.
func (op *operation) end() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.ended = true
	return !op.forsaken
}

// forsake gives the operation up, unless it has ended or gone on since it had made
// so many steps.
func (op *operation) forsake(steps int) (now int, done bool) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.forsaken = !op.ended && op.steps == steps
	return op.steps, op.forsaken
}

// watch runs f and waits for it while there are signs of life. An operation that was
// given up holds a thread until the disk answers; what it returns then goes to
// undo. Meanwhile nothing else is begun, so there are never more of them than
// were running when the disk went silent.
func watch[T any](h *health, f func(*operation) (T, error), undo func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	op, done := &operation{}, make(chan answer, 1)
	h.operations.Go(func() {
		v, err := f(op)
		if op.end() {
			done <- answer{v, err}
			return
		}
		if err == nil && undo != nil {
			undo(v)
		}
		h.addStuck(-1)
	})
	patience := h.patience
	if h.stuck() > 0 {
		patience = time.Millisecond // this one only tidies up
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for steps := 0; ; {
		select {
		case a := <-done:
			return a.value, a.err
		case <-timer.C:
		}
		h.addStuck(1) // before the operation may see that it is given up
		now, forsaken := op.forsake(steps)
		if forsaken {
			h.fail(errStuck, true)
			var none T
			return none, meta.Worded(ErrNoRoom, "nvme directory %s: %w", h.dir, errStuck)
		}
		h.addStuck(-1)
		steps = now
		timer.Reset(patience)
	}
}

// do watches what returns nothing.
func (h *health) do(f func(*operation) error) error {
	_, err := watch(h, func(op *operation) (struct{}, error) { return struct{}{}, f(op) }, nil)
	return err
}
