package lmdb

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// Holds are the LMDB environments that a process holds open to keep writers
// from reusing the pages of a snapshot. A process needs exactly one: LMDB
// allows a file to be opened once in a process, since closing it a second
// time drops the locks of the first. The zero value is ready, and its methods
// may be called concurrently.
//
// The C library maps the lock file and takes a mutex in it, so every process that
// may write the lock file is trusted not to truncate it while it is in use. The
// library never looks at a page of the tree: it is given files whose meta pages
// were checked here, and only begins transactions.
//
// The lock guards the table, and how many holds each environment has. It is held while
// an environment is opened or closed: neither may overlap with the other for one file, and
// both take microseconds.
type Holds struct {
	mu struct {
		sync.Mutex
		open map[fileID]*environment
	}
}

// An environment is shared by the holds on one file.
type environment struct {
	id    fileID
	env   *lmdb.Env
	lock  os.FileInfo // the lock file that it uses
	holds int
}

// A hold is a read-only transaction that stays open. While it lives and the
// writers of the file use the same lock file, no page of its snapshot changes.
type hold struct {
	owner *Holds
	on    *environment
	txn   *lmdb.Txn
	id    uint64
	place place
}

// hold holds the newest snapshot of a file. The error says why it cannot.
func (p *Holds) hold(at place, id fileID, h head) (*hold, error) {
	if p == nil {
		return nil, errors.New("locks are not to be used")
	}
	return bounded(func() (*hold, error) { return p.begin(at, id, h) }, (*hold).release)
}

// lockWait is how long the mutex in a lock file is waited for. LMDB holds it
// for microseconds, and takes it over from a process that died with it.
const lockWait = 5 * time.Second

// bounded calls f, which may wait for that mutex in the C library, where
// nothing can interrupt it, and abandons the call when its time is up. A result
// that comes later is undone.
func bounded[T any](f func() (T, error), undo func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done, late := make(chan result), make(chan struct{})
	go func() {
		v, err := f()
		select {
		case done <- result{v, err}:
		case <-late:
			if err == nil {
				undo(v)
			}
		}
	}()
	timer := time.NewTimer(lockWait)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C:
		close(late)
		var none T
		return none, fmt.Errorf("some process has held the lock file for %v", lockWait)
	}
}

func (p *Holds) begin(at place, id fileID, h head) (*hold, error) {
	on, err := p.acquire(at, id, h)
	if err != nil {
		return nil, err
	}
	txn, err := on.env.BeginTxn(nil, lmdb.Readonly)
	if err != nil {
		p.release(on)
		return nil, fmt.Errorf("begin a transaction: %w", err)
	}
	n := &hold{owner: p, on: on, txn: txn, id: uint64(txn.ID()), place: at}
	// On a read-only file system the library goes on without locks, and
	// does not say so.
	if err := n.effective(n.id); err != nil {
		n.release()
		return nil, err
	}
	return n, nil
}

func (p *Holds) acquire(at place, id fileID, h head) (*environment, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	on := p.mu.open[id]
	if on == nil {
		var err error
		if on, err = openEnvironment(at, id, h); err != nil {
			return nil, err
		}
		if p.mu.open == nil {
			p.mu.open = make(map[fileID]*environment)
		}
		p.mu.open[id] = on
	}
	on.holds++
	return on, nil
}

func (p *Holds) release(on *environment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on.holds--; on.holds == 0 {
		delete(p.mu.open, on.id)
		on.env.Close()
	}
}

// openEnvironment opens a file with locks. It does not create a missing lock file:
// the directory belongs to the database's owner.
func openEnvironment(at place, id fileID, h head) (*environment, error) {
	lock, err := os.Lstat(at.lock)
	if err != nil {
		return nil, fmt.Errorf("no lock file: %w", err)
	}
	if !lock.Mode().IsRegular() {
		return nil, fmt.Errorf("lock file %s is not a regular file", at.lock)
	}
	env, err := lmdb.NewEnv()
	if err != nil {
		return nil, err
	}
	on := &environment{id: id, env: env, lock: lock}
	if err := on.open(at, h); err != nil {
		env.Close()
		return nil, err
	}
	return on, nil
}

func (on *environment) open(at place, h head) error {
	flags := uint(lmdb.Readonly | lmdb.NoReadahead)
	if at.single {
		flags |= lmdb.NoSubdir
	}
	// The map is never looked at. It has to be larger than the file may
	// grow meanwhile, or no later transaction can begin.
	if h.room < 1<<46 {
		if err := on.env.SetMapSize(int64(2 * h.room)); err != nil {
			return fmt.Errorf("open with locks: %w", err)
		}
	}
	if err := on.env.Open(at.open, flags, 0); err != nil {
		return fmt.Errorf("open with locks: %w", err)
	}
	fd, err := on.env.FD()
	if err != nil {
		return err
	}
	if id, err := identify(int(fd)); err != nil || id != on.id {
		return errors.Join(errors.New("the file was replaced"), err)
	}
	// Slots of killed processes would keep writers from reusing pages.
	if _, err := on.env.ReaderCheck(); err != nil {
		return fmt.Errorf("check readers: %w", err)
	}
	return nil
}

// effective returns nil if no transaction up to the one after newest, which was
// read from the file, has touched the held snapshot. It trusts nothing that
// another process can undo: the lock file may be removed and made anew, this
// process's slot cleared by a process that takes it for dead (as happens when this
// process opens and closes the lock file elsewhere), and the file's writer may use
// no locks. It cannot see writers with and without locks in turn, which LMDB does
// not survive either.
func (n *hold) effective(newest uint64) error {
	if newest < n.id {
		return fmt.Errorf("transaction %d became %d", n.id, newest)
	}
	if now, err := os.Lstat(n.place.lock); err != nil || !os.SameFile(now, n.on.lock) {
		return fmt.Errorf("lock file %s was removed or replaced", n.place.lock)
	}
	if newest > n.id {
		txn, err := bounded(func() (*lmdb.Txn, error) { return n.on.env.BeginTxn(nil, lmdb.Readonly) }, (*lmdb.Txn).Abort)
		if err != nil {
			return fmt.Errorf("begin a transaction: %w", err)
		}
		seen := uint64(txn.ID())
		txn.Abort()
		// A writer publishes a transaction in the file first and then in
		// the lock file, so one of difference is natural; and pages are
		// not reused before the third.
		if seen+1 < newest {
			return fmt.Errorf("transaction %d was made by a writer without locks", newest)
		}
	}
	return n.listed()
}

// listed returns nil if the lock file's table of readers has our slot.
func (n *hold) listed() error {
	found := false
	err := n.on.env.ReaderList(func(line string) error {
		f := strings.Fields(line)
		found = found || len(f) == 3 && f[0] == strconv.Itoa(os.Getpid()) && f[2] == strconv.FormatUint(n.id, 10)
		return nil
	})
	if err == nil && !found {
		err = errors.New("the lock file does not list this process as a reader")
	}
	return err
}

func (n *hold) release() {
	if n != nil {
		n.txn.Abort()
		n.owner.release(n.on)
	}
}
