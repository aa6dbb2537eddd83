package pool

import (
	"fmt"
	"path"
	"sync"

	"rankfs/meta"
)

// promises are the bytes of a job's quota, in all copies, that files of attempts on this node
// have reserved, by their names. One that is gone needs none: it was removed, or is counted
// as a map. The lock is held from the look at what a job has until more is promised, or
// two would promise the same room.
type promises struct {
	sync.Mutex
	of map[string]int64
}

// MayGrow says why attempts must not have so many more bytes, if so: with all copies the
// job would have more than its quota.
func (g Attempts) MayGrow(bytes int64) error {
	is, err := g.is()
	if err != nil {
		return err
	}
	return g.job.mayGrow(bytes, is.Spec.Copies)
}

func (j *Job) mayGrow(bytes int64, copies int) error {
	f, err := j.files()
	if err != nil {
		return err
	}
	f.promised.Lock()
	defer f.promised.Unlock()
	return j.mayHave(f, "", bytes, copies)
}

// Reserve has a file of an attempt count as one of so many bytes, from before it has them.
// If it does not get them, that is undone.
func (g Attempts) Reserve(name string, bytes int64) (undo func(), err error) {
	is, err := g.is()
	if err != nil {
		return nil, err
	}
	f, err := g.job.files()
	if err != nil {
		return nil, err
	}
	name = path.Join(stageDir(g.number), attemptsDir, name)
	p := &f.promised
	p.Lock()
	defer p.Unlock()
	if err := g.job.mayHave(f, name, bytes, is.Spec.Copies); err != nil {
		return nil, err
	}
	if p.of == nil {
		p.of = make(map[string]int64)
	}
	had := p.of[name]
	p.of[name] = max(had, bytes*int64(max(1, is.Spec.Copies)))
	return func() {
		p.Lock()
		defer p.Unlock()
		p.of[name] = had
	}, nil
}

// mayHave says why a file must not have so many bytes beside what the job has, and what other
// files have reserved.
func (j *Job) mayHave(f *files, name string, bytes int64, copies int) error {
	is, ok := j.pool.config.State.PoolJob(j.is.Name)
	if !ok || is.Number != j.is.Number {
		return fmt.Errorf("job %s of the shuffle pool %w", j.is.Name, meta.ErrNotExist)
	}
	has, reserved := j.pool.config.State.PoolBytes(j.is.Number), int64(0)
	for other, n := range f.promised.of {
		if _, err := f.root.Lstat(other); err != nil {
			delete(f.promised.of, other)
		} else if other != name {
			reserved += n
		}
	}
	if is.Quota > 0 && bytes > (is.Quota-has-reserved)/int64(max(1, copies)) {
		return meta.Worded(meta.ErrQuota, "job %s has %d bytes of a quota of %d, all copies counted, and attempts on this node have reserved %d; remove stages, or give it a larger quota: rankfs shuffle quota %[1]s SIZE",
			j.is.Name, has, is.Quota, reserved)
	}
	return nil
}
