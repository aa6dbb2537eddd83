package disks

import (
	"fmt"
	"sync"
	"time"
)

// A job is a run of system calls that a disk may never answer.
type job struct {
	mu              sync.Mutex
	steps           int
	ended, forsaken bool
}

// alive is a sign of life. It reports whether the caller still waits for the job.
func (j *job) alive() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.steps++
	return !j.forsaken
}

// give copies bytes to the caller's memory, and reports whether the caller still
// waits for the job: if not, that memory may have another use by now.
func (j *job) give(to, from []byte) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.forsaken {
		copy(to, from)
	}
	return !j.forsaken
}

// end ends the job, and reports whether the caller waited to the end.
func (j *job) end() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	return !j.forsaken
}

// forsake gives the job up, unless it has ended or gone on since it had made
// so many steps.
func (j *job) forsake(steps int) (now int, done bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forsaken = !j.ended && j.steps == steps
	return j.steps, j.forsaken
}

// watch runs f and waits for it while there are signs of life. A job that was
// given up holds a thread until the disk answers; what it returns then goes to
// undo. Meanwhile nothing else is begun, so there are never more of them than
// were running when the disk went silent.
func watch[T any](d *directory, f func(*job) (T, error), undo func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	j, done := &job{}, make(chan answer, 1)
	d.jobs.Go(func() {
		v, err := f(j)
		if j.end() {
			done <- answer{v, err}
			return
		}
		if err == nil && undo != nil {
			undo(v)
		}
		d.mu.Lock()
		d.mu.stuck--
		d.mu.Unlock()
	})
	d.mu.Lock()
	patience := d.config.Patience
	if d.mu.stuck > 0 {
		patience = time.Millisecond // this one only tidies up
	}
	d.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for steps := 0; ; {
		select {
		case a := <-done:
			return a.value, a.err
		case <-timer.C:
		}
		d.mu.Lock()
		d.mu.stuck++ // before the job may see that it is given up
		d.mu.Unlock()
		now, forsaken := j.forsake(steps)
		if forsaken {
			d.fail(errStuck, true)
			var none T
			return none, fmt.Errorf("nvme directory %s: %w: %w", d.path, errStuck, ErrNoRoom)
		}
		d.mu.Lock()
		d.mu.stuck--
		d.mu.Unlock()
		steps = now
		timer.Reset(patience)
	}
}

// do watches what returns nothing.
func (d *directory) do(f func(*job) error) error {
	_, err := watch(d, func(j *job) (struct{}, error) { return struct{}{}, f(j) }, nil)
	return err
}
