package pool

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/turns"
)

// A local has the files of jobs on this node. The lock mu guards the table alone, so that
// a look at it waits for no file system.
type local struct {
	*agreed
	budget *memory.Budget
	disk   *disk.Disk    // nil if there is none
	work   *turns.Shares // of processors, to divide maps and merge parts

	making sync.Mutex // before mu; held while file systems are mounted and opened

	mu struct {
		sync.Mutex
		jobs map[uint64]*files // by number
	}
}

func newLocal(a *agreed, b *memory.Budget) *local {
	l := &local{agreed: a, budget: b, work: turns.New(int64(runtime.GOMAXPROCS(0)))}
	l.mu.jobs = make(map[uint64]*files)
	return l
}

// open adopts what an earlier daemon left.
func (l *local) open() error {
	if err := os.MkdirAll(l.config.Dir, 0700); err != nil {
		return fmt.Errorf("directory of the shuffle pool: %w", err)
	}
	if d := l.config.Disk; d != (Disk{}) {
		var err error
		if l.disk, err = disk.Open(d.Dir, d.Bytes, l.config.Cluster.Self(), note(l.config.Dir), l.config.Log); err != nil {
			return err
		}
	}
	if err := l.adopt(); err != nil {
		return fmt.Errorf("directory of the shuffle pool: %w", err)
	}
	l.budget.Divide()
	return nil
}

// adopt takes over the files that an earlier daemon left. Other nodes may have asked for
// some of them by now.
func (l *local) adopt() error {
	entries, err := os.ReadDir(l.config.Dir)
	if err != nil {
		return err
	}
	l.making.Lock()
	defer l.making.Unlock()
	for _, e := range entries {
		number, err := strconv.ParseUint(e.Name(), 10, 64)
		if err != nil || l.has(number) != nil {
			continue
		}
		f, err := openFiles(l.dir(number), number, l.budget)
		if err == nil {
			err = l.addDisk(f)
		}
		if err != nil {
			l.config.Log.Warn("files of a job of the shuffle pool cannot be used", "dir", l.dir(number), "cause", err)
			continue
		}
		l.add(f)
	}
	return nil
}

func (l *local) dir(number uint64) string {
	return filepath.Join(l.config.Dir, strconv.FormatUint(number, 10))
}

// adoptDisk takes what the disk has of jobs whose memory was lost with the host.
func (l *local) adoptDisk() {
	if l.disk == nil {
		return
	}
	jobs := make(map[uint64]state.PoolJob)
	for _, j := range l.config.State.PoolJobs() {
		jobs[j.Number] = j
	}
	for _, number := range l.disk.Jobs() {
		var err error
		if j, ok := jobs[number]; ok {
			_, err = l.files(j)
		} else {
			err = l.disk.Drop(number, disk.Unused)
		}
		if err != nil {
			l.config.Log.Warn("what the disk has of a job of the shuffle pool stays there, unused", "job", number, "cause", err)
		}
	}
}

// files are the files of a job, which are made if there are none yet.
func (l *local) files(j state.PoolJob) (*files, error) {
	if f := l.has(j.Number); f != nil {
		return f, nil
	}
	f, err := l.makeFiles(j)
	if err == nil {
		l.budget.Divide()
	}
	return f, err
}

func (l *local) makeFiles(j state.PoolJob) (*files, error) {
	l.making.Lock()
	defer l.making.Unlock()
	if f := l.has(j.Number); f != nil {
		return f, nil
	}
	if is, ok := l.config.State.PoolJob(j.Name); !ok || is.Number != j.Number {
		return nil, fmt.Errorf("job %s of the shuffle pool %w", j.Name, meta.ErrNotExist)
	}
	if l.config.RAM == 0 {
		return nil, meta.Worded(meta.ErrQuota, "this node keeps nothing of the shuffle pool: it was mounted without --pool-ram")
	}
	f, err := makeFiles(l.dir(j.Number), j, l.budget)
	if err != nil {
		return nil, fmt.Errorf("files of job %s of the shuffle pool: %w", j.Name, err)
	}
	if err := l.addDisk(f); err != nil {
		return nil, errors.Join(fmt.Errorf("files of job %s of the shuffle pool: %w", j.Name, err), f.end())
	}
	l.add(f)
	return f, nil
}

// addDisk opens the job's directory on the disk. While that has failed there is none: the job has
// memory alone, until it is adopted by another daemon.
func (l *local) addDisk(f *files) error {
	if l.disk == nil {
		return nil
	}
	root, err := l.disk.Job(f.number)
	switch {
	case err == nil:
		f.disk = l.disk
		f.maps.AddDisk(l.disk, root)
	case errors.Is(err, disk.ErrFull), l.disk.Failed(err) != nil:
		l.config.Log.Warn("a job of the shuffle pool has nothing on the disk", "dir", f.Dir, "cause", err)
		return nil
	}
	return err
}

// all are the files of all jobs, by number.
func (l *local) all() map[uint64]*files {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.mu.jobs)
}

// made is all, after files are there that are being made, of a job that was there a moment ago.
func (l *local) made() map[uint64]*files {
	l.making.Lock()
	defer l.making.Unlock()
	return l.all()
}

// has are the files of a job, if they are made.
func (l *local) has(number uint64) *files {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.jobs[number]
}

// add has files known, and divide the budget with others.
func (l *local) add(f *files) {
	l.budget.Add(f.Share)
	f.work = l.work
	f.promise(l.agreed)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.jobs[f.number] = f
}

// end frees the files of a job, and reports whether none stay.
func (l *local) end(number uint64, f *files) (ended bool) {
	l.mu.Lock()
	delete(l.mu.jobs, number)
	l.mu.Unlock()
	l.budget.Remove(f.Share)
	err := f.end()
	if err != nil {
		l.config.Log.Warn("files of a job of the shuffle pool stay", "dir", f.Dir, "cause", err)
	}
	l.budget.Divide()
	return err == nil
}

// close gives back what is open. The files stay.
func (l *local) close() error {
	l.making.Lock()
	defer l.making.Unlock()
	var errs []error
	for _, f := range l.all() {
		errs = append(errs, f.close())
	}
	if l.disk != nil {
		errs = append(errs, l.disk.Close())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.mu.jobs)
	return errors.Join(errs...)
}

// errKeepsNothing is why a node without memory for the pool does not ask itself.
var errKeepsNothing = meta.Worded(meta.ErrUnavailable, "this node keeps nothing of the shuffle pool; mount it with --pool-ram SIZE")

// ownFiles is files, and nil on a node that keeps nothing of the pool: it reads parts from
// others.
func (l *local) ownFiles(j state.PoolJob) (*files, error) {
	if l.config.RAM == 0 {
		return nil, nil
	}
	return l.files(j)
}
