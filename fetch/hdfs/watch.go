package hdfs

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// A watch looks, while a source is attached, whether its files are still those
// of the index. A round takes a look at as many as one page of a listing shows,
// or at a single file; the next round goes on from there.
//
// A namenode that does not answer says nothing about the files: what was found
// last stands.
type watch struct {
	cluster *cluster
	index   *index.Index
	cancel  context.CancelFunc
	done    chan struct{}

	mu struct {
		sync.Mutex
		stale error
	}
}

// round is how soon a change is noticed, if the source is one file or one page
// of a directory: a namenode serves tens of thousands of such calls a second.
const round = time.Second

func newWatch(c *cluster, x *index.Index) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{cluster: c, index: x, cancel: cancel, done: make(chan struct{})}
	go w.run(ctx)
	return w
}

func (w *watch) close() {
	w.cancel()
	<-w.done
}

// state returns the error that the source is stale with, if it is.
func (w *watch) state() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.stale
}

func (w *watch) run(ctx context.Context) {
	defer close(w.done)
	tick := time.NewTicker(round)
	defer tick.Stop()
	for at := 0; w.state() == nil; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		next, err := w.look(ctx, at%w.index.Files())
		if errors.Is(err, meta.ErrStale) {
			w.mu.Lock()
			w.mu.stale = err
			w.mu.Unlock()
		}
		if err == nil {
			at = next
		}
	}
}

// perRound bounds the files that a round looks at.
const perRound = 1000

// look compares the files from number at on, and returns where to go on. Files
// of one directory are seen by its listing.
func (w *watch) look(ctx context.Context, at int) (next int, err error) {
	f := w.index.File(uint32(at))
	next = sameDir(w.index, at)
	if next-at < 4 {
		st, err := w.cluster.names.Stat(ctx, f.Path)
		if errors.Is(err, meta.ErrNotExist) {
			return 0, stale(f.Path, "it is gone")
		}
		if err != nil {
			return 0, err
		}
		return at + 1, compare(f, st)
	}
	return next, w.compareListing(ctx, path.Dir(f.Path), at, next)
}

// sameDir returns the end of the files from number at on that one listing shows.
func sameDir(x *index.Index, at int) (end int) {
	dir := path.Dir(x.File(uint32(at)).Path)
	for end = at + 1; end < x.Files() && end-at < perRound; end++ {
		if path.Dir(x.File(uint32(end)).Path) != dir {
			break
		}
	}
	return end
}

// compareListing compares files of one directory, which are in the order of
// its listing.
func (w *watch) compareListing(ctx context.Context, dir string, at, end int) error {
	first := path.Base(w.index.File(uint32(at)).Path)
	before := first[:len(first)-1] // after which at most a few others come
	err := w.cluster.names.ListAfter(ctx, dir, before, false, func(st namenode.Status) error {
		for at < end {
			f := w.index.File(uint32(at))
			switch name := path.Base(f.Path); {
			case st.Name < name:
				return nil
			case st.Name > name:
				return stale(f.Path, "it is gone")
			}
			if err := compare(f, st); err != nil {
				return err
			}
			at++ // perhaps another part of the same file
		}
		return errSeen
	})
	switch {
	case errors.Is(err, errSeen):
		return nil
	case err == nil:
		return stale(w.index.File(uint32(at)).Path, "it is gone")
	case errors.Is(err, meta.ErrNotExist):
		return stale(dir, "it is gone")
	}
	return err
}

var errSeen = errors.New("all were seen")
