package hdfs

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// A watch checks, while a source is attached, whether its files are still those of the
// index. A round checks as many files as one page of a listing shows, or a single file;
// the next round goes on from there.
//
// A namenode that does not answer says nothing about the files: the state that was
// found last stays. The lock guards what was found, and is not held while the namenode is
// asked.
type watch struct {
	look   func(ctx context.Context, at int) (next int, err error) // a round, from a file on
	cancel context.CancelFunc
	done   chan struct{}

	mu struct {
		sync.Mutex
		stale error
	}
}

// round is how soon a change is noticed, if the source is one file or one page
// of a directory: a namenode serves tens of thousands of such calls a second.
const round = time.Second

func newWatch(look func(ctx context.Context, at int) (next int, err error)) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{look: look, cancel: cancel, done: make(chan struct{})}
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

// note makes the source stale that a round or a read found so.
func (w *watch) note(err error) {
	if errors.Is(err, meta.ErrStale) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mu.stale = err
	}
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
		next, err := w.look(ctx, at)
		w.note(err)
		if err == nil {
			at = next
		}
	}
}

const (
	// perRound bounds the files that are looked at together: a page of a listing
	// shows as many.
	perRound = 1000
	// worthAPage is how many files have to be asked for one by one to cost more
	// than a page.
	worthAPage = 10
)

// compare checks whether files from number at on, and before end, are still
// those of the index, and returns where to go on. Files of one directory are
// checked by its listing, if the user may list it.
func (c *cluster) compare(ctx context.Context, x *index.Index, at, end int) (next int, err error) {
	if next = sameDir(x, at, end); next-at >= worthAPage {
		if err = c.compareListing(ctx, x, at, next); !errors.Is(err, os.ErrPermission) {
			return next, err
		}
	}
	return at + 1, c.verify(ctx, x.File(uint32(at)))
}

// verify returns a stale error if a file is no longer the indexed one.
func (c *cluster) verify(ctx context.Context, f index.File) error {
	st, err := c.names.Stat(ctx, f.Path)
	if errors.Is(err, meta.ErrNotExist) {
		return stale(f.Path, "it is gone")
	}
	if err != nil {
		return err
	}
	return compare(f, st)
}

func compare(f index.File, st namenode.Status) error {
	if now := (file{f.Path, st}); st.Dir || now.stamp() != wholeStamp(f.Stamp) {
		return stale(f.Path, "it was written anew, appended to or replaced")
	}
	return nil
}

// sameDir returns the end of the files from number at on, and before end, that
// one listing shows in their order. In an index they are in the order of their paths.
func sameDir(x *index.Index, at, end int) int {
	dir, last := path.Split(x.File(uint32(at)).Path)
	end = min(end, at+perRound)
	for i := at + 1; i < end; i++ {
		next, name := path.Split(x.File(uint32(i)).Path)
		if next != dir || listed(last, name) > 0 {
			return i
		}
		last = name
	}
	return end
}

// listed compares names as a namenode lists them: by their bytes, which are numbers with a
// sign to it, so that what is not ASCII comes before what is.
func listed(a, b string) int {
	return slices.CompareFunc([]byte(a), []byte(b), func(x, y byte) int { return cmp.Compare(int8(x), int8(y)) })
}

// compareListing compares files of one directory, which are in the order of
// its listing.
func (c *cluster) compareListing(ctx context.Context, x *index.Index, at, end int) error {
	dir, first := path.Split(x.File(uint32(at)).Path)
	dir = path.Clean(dir)
	err := c.names.ListAfter(ctx, dir, before(first), false, func(st namenode.Status) error {
		for at < end {
			f := x.File(uint32(at))
			switch order := listed(st.Name, path.Base(f.Path)); {
			case order < 0:
				return nil
			case order > 0:
				return stale(f.Path, "it is gone")
			}
			if err := compare(f, st); err != nil {
				return err
			}
			at++ // perhaps another split of the same file
		}
		return errSeen
	})
	switch {
	case errors.Is(err, errSeen):
		return nil
	case err == nil:
		return stale(x.File(uint32(at)).Path, "it is gone")
	case errors.Is(err, meta.ErrNotExist):
		return stale(dir, "it is gone")
	}
	return err
}

// before stands before a name in a listing, with hardly anything between, and is
// UTF-8 as the name is.
func before(name string) string {
	r, size := utf8.DecodeLastRuneInString(name)
	name = name[:len(name)-size]
	if r--; r == unicode.MaxASCII { // then r was what comes first of all
		return name
	}
	if utf16.IsSurrogate(r) {
		r = '\ud7ff'
	}
	return name + string(r) + string(unicode.MaxASCII)
}

var errSeen = errors.New("all were seen")
