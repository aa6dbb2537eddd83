package hdfs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"rankfs/cache/blobs"
	"rankfs/meta"
)

// Copies are files of HDFS that are on a local disk as a whole: blobs, by their
// keys.
//
// A copy stays for as long as a source uses it or a dataset wants it, over
// restarts too; an interrupted one for a day, in which it can be gone on with.
//
// While mu is held there is no I/O.
type copies struct {
	blobs *blobs.Store
	log   *slog.Logger
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu struct {
		sync.Mutex
		byKey  map[string]*copied
		wanted map[string]bool // nil until the first retain: all is
		closed bool
	}
}

// patience is how long an interrupted copy that no dataset wants is kept for another
// attempt: over a night.
const patience = 24 * time.Hour

// A use is a time in which a copy is held open, by one or several users. One goroutine
// owns the copy's files meanwhile: it opens or makes them, and closes them when
// the last user has left.
type use struct {
	users   int           // guarded by copies.mu; at zero the use is ending
	lasting bool          // the copy is made even if no user waits for it; guarded too
	made    chan struct{} // closed when the copy is known not to be there, and is being made
	ready   chan struct{} // closed when it is there, or err says why not
	ended   chan struct{}
	err     error
	leave   context.CancelFunc
}

func newCopies(store *blobs.Store, log *slog.Logger) *copies {
	c := &copies{blobs: store, log: log}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.mu.byKey = make(map[string]*copied)
	return c
}

// close interrupts the making of copies. No source is open any more.
func (c *copies) close() {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.Unlock()
	c.stop()
	c.work.Wait()
}

// get returns the copy of a file, made while it waits if need be, and calls done
// with how many bytes are there. The caller ends its use with drop.
func (c *copies) get(ctx context.Context, s *Source, key string, f file, done func(bytes int64)) (*copied, error) {
	k, err := c.join(ctx, s, key, f, false)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-k.use.ready:
			if err := k.use.err; err != nil {
				c.drop(k)
				return nil, err
			}
			return k, nil
		case <-tick.C:
			done(k.have.Load())
		case <-ctx.Done():
			c.drop(k)
			return nil, ctx.Err()
		}
	}
}

// find returns the copy of a file that is there. If there is none one is begun,
// and the error wraps meta.ErrBusy until it is whole.
func (c *copies) find(ctx context.Context, s *Source, key string, f file) (*copied, error) {
	k, err := c.join(ctx, s, key, f, true)
	if err != nil {
		return nil, err
	}
	select {
	case <-k.use.ready:
		err = k.use.err
	case <-k.use.made:
		select {
		case <-k.use.ready:
			err = k.use.err
		default:
			err = c.progress(k)
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		c.drop(k)
		return nil, err
	}
	return k, nil
}

// progress is the error of a copy that is not whole yet.
func (c *copies) progress(k *copied) error {
	c.mu.Lock()
	failed := k.failed
	c.mu.Unlock()
	err := fmt.Errorf("%q %w: it is being copied to this host, %d of %d bytes are here; try again later",
		k.of.path, meta.ErrBusy, k.have.Load(), k.of.Size)
	if failed != nil {
		err = fmt.Errorf("%w (the last attempt: %v)", err, failed)
	}
	return err
}

// join makes the caller a user of a copy, which may not be there yet.
func (c *copies) join(ctx context.Context, s *Source, key string, f file, lasting bool) (*copied, error) {
	for {
		k, ending, err := c.tryJoin(s, key, f, lasting)
		if err != nil || ending == nil {
			return k, err
		}
		select {
		case <-ending:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *copies) tryJoin(s *Source, key string, f file, lasting bool) (k *copied, ending <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, nil, fmt.Errorf("copy %q: %w: the daemon is shutting down", f.path, meta.ErrBusy)
	}
	k = c.mu.byKey[key]
	if k == nil {
		k = newCopied(c, c.blobs.Blob(key))
		c.mu.byKey[key] = k
	}
	if k.use == nil {
		k.source, k.of = s, f
		c.begin(k)
	} else if k.use.users == 0 {
		return nil, k.use.ended, nil
	}
	k.use.users++
	if lasting && !k.use.lasting {
		k.use.lasting = true
		k.use.users++ // until it is ready
	}
	if lasting && c.mu.wanted != nil {
		c.mu.wanted[key] = true // until the next retain
	}
	return k, nil, nil
}

// begin starts the use of a copy. mu is held.
func (c *copies) begin(k *copied) {
	ctx, leave := context.WithCancel(c.ctx)
	u := &use{made: make(chan struct{}), ready: make(chan struct{}), ended: make(chan struct{}), leave: leave}
	k.use = u
	c.work.Go(func() {
		defer leave()
		u.err = k.open(ctx, u.made)
		close(u.ready)
		c.mu.Lock()
		lasting := u.lasting
		k.failed = u.err
		u.lasting = true // the making is over: no later user has to keep it going
		c.mu.Unlock()
		if lasting {
			if u.err != nil {
				c.log.Warn("copy not made", "file", k.of.path, "cause", u.err)
			}
			c.leave(k)
		}
		<-ctx.Done()
		k.blob.Close()
		c.end(k, u.err != nil)
	})
}

// leave ends the part of one user.
func (c *copies) leave(k *copied) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.use.users--; k.use.users == 0 {
		k.use.leave()
	}
}

// drop is leave that waits, if it was the last, until the files are closed.
func (c *copies) drop(k *copied) {
	u := k.use
	c.leave(k)
	c.mu.Lock()
	last := u.users == 0
	c.mu.Unlock()
	if last {
		<-u.ended
	}
}

// end lets the next use begin, after removing a copy that no dataset wants.
func (c *copies) end(k *copied, failed bool) {
	c.mu.Lock()
	needless := c.mu.wanted != nil && !c.mu.wanted[k.key] && !failed
	c.mu.Unlock()
	if needless {
		k.blob.Remove()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !k.blob.Counted() { // there are no files
		delete(c.mu.byKey, k.key)
	}
	u := k.use
	u.users, k.use = 0, nil
	close(u.ended)
}

// retain sets which copies are wanted. Others are removed as soon as they have no use.
func (c *copies) retain(keys map[string]bool) {
	c.mu.Lock()
	first := c.mu.wanted == nil
	c.mu.wanted = keys
	c.mu.Unlock()
	if first {
		c.list()
	}
	c.sweep(patience)
}

// sweep removes copies that no dataset wants and that have no use; interrupted ones
// only if they were not touched for as long as patience.
func (c *copies) sweep(patience time.Duration) {
	c.mu.Lock()
	var gone []*copied
	for key, k := range c.mu.byKey {
		if k.use == nil && c.mu.wanted != nil && !c.mu.wanted[key] && (k.blob.Whole() || time.Since(k.blob.Touched()) >= patience) {
			k.use = &use{ended: make(chan struct{})} // so that no other begins meanwhile
			gone = append(gone, k)
		}
	}
	c.mu.Unlock()
	for _, k := range gone {
		c.log.Info("copy removed", "copy", k.blob.Path())
		k.blob.Remove()
		c.end(k, true)
	}
}

// list finds the copies that earlier processes left. It removes those that the budget
// has no room for any more, the unfinished first.
func (c *copies) list() {
	found, err := c.blobs.List()
	if err != nil {
		c.log.Error("copies not listed", "cause", err)
	}
	for _, b := range found {
		c.adopt(b)
	}
}

// adopt enters a copy that an earlier process left.
func (c *copies) adopt(b *blobs.Blob) {
	c.mu.Lock()
	known := c.mu.byKey[b.Key()] != nil
	c.mu.Unlock()
	if known {
		return
	}
	if err := b.Adopt(c.ctx); err != nil {
		c.log.Warn("copy removed: the budget has no room for it", "copy", b.Path(), "cause", err)
		b.Remove()
	}
	if !b.Counted() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.byKey[b.Key()] = newCopied(c, b)
}
