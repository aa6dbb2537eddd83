package stall

import (
	"slices"
	"sync"
	"time"
)

// A Clock adds up how long one fill was in each cause, from New on. At every
// moment the sum is the time that has passed: what no branch is in a cause for
// is Overhead. Its methods may be called concurrently.
//
// The lock guards how long the fill was in each cause, and where its branches are. That
// of a clock that is followed is taken before those of its followers, and a fill never
// waits for one that waits for it.
type Clock struct {
	now   func() time.Time
	flows *Flows // nil: not measured
	of    *Flows // the same of one source
	root  Branch

	mu struct {
		sync.Mutex
		since     time.Time // up to here all is in spent
		spent     ByCause
		under     [Causes + 1]int // how many branches are in each cause, or idle
		followers []*Branch
	}
}

// A Branch is one of the things that a fill does at once. It is used by one
// goroutine at a time.
type Branch struct {
	clock *Clock
	cause Cause // guarded by the clock's lock
}

// newClock starts the clock of a fill that begins in a cause.
func newClock(now func() time.Time, f *Flows, cause Cause) *Clock {
	c := &Clock{now: now, flows: f}
	c.root = Branch{c, cause}
	c.mu.since = now()
	c.mu.under[cause] = 1
	return c
}

// Enter says what the fill's own goroutine does from now on.
func (c *Clock) Enter(cause Cause) { c.move(&c.root, cause) }

// move puts a branch into another cause, and returns the one before.
func (c *Clock) move(b *Branch, to Cause) (was Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(c.now())
	was, b.cause = b.cause, to
	c.mu.under[was]--
	c.mu.under[to]++
	shown := c.shown()
	for _, f := range c.mu.followers {
		f.clock.move(f, shown)
	}
	return was
}

// advance divides the time up to now among the causes that are under way. mu is
// held.
func (c *Clock) advance(now time.Time) {
	passed := now.Sub(c.mu.since)
	if passed <= 0 {
		return
	}
	c.mu.since = now
	n := 0
	for cause := range Causes {
		if c.mu.under[cause] > 0 {
			n++
		}
	}
	if n == 0 {
		c.mu.spent[Overhead] += passed
		return
	}
	share := passed / time.Duration(n)
	rest := passed - share*time.Duration(n)
	for cause := range Causes {
		if c.mu.under[cause] > 0 {
			c.mu.spent[cause] += share + rest
			rest = 0
		}
	}
}

// shown is the one cause that followers are told. mu is held.
func (c *Clock) shown() Cause {
	for _, cause := range [...]Cause{Remote, ByTCP, ByFile, Source, Peer, Disk, Decode, Memory, Admission} {
		if c.mu.under[cause] > 0 {
			return cause
		}
	}
	return Overhead
}

// follow has a branch of another fill go through the causes of this one.
func (c *Clock) follow(b *Branch) (was Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.followers = append(c.mu.followers, b)
	return b.clock.move(b, c.shown())
}

func (c *Clock) unfollow(b *Branch, back Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.mu.followers, b); i >= 0 {
		c.mu.followers = slices.Delete(c.mu.followers, i, i+1)
	}
	b.clock.move(b, back)
}

// fork adds a branch that does nothing yet.
func (c *Clock) fork() *Branch {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(c.now())
	c.mu.under[idle]++
	return &Branch{c, idle}
}

// read is the time spent up to now.
func (c *Clock) read() (now time.Time, spent ByCause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now = c.now() // under the lock, or another goroutine may have advanced past it
	c.advance(now)
	return now, c.mu.spent
}

// A Wait is an open that waits for a fill.
type Wait struct {
	clock *Clock
	begin time.Time
	from  ByCause
}

// Wait begins a wait that counts from a moment just before.
func (c *Clock) Wait(begin time.Time) Wait {
	_, spent := c.read()
	return Wait{c, begin, spent}
}

// ByCause is the wait up to now by cause; its sum is the wait. What passed before
// it was on the clock is Admission.
func (w Wait) ByCause() ByCause {
	now, spent := w.clock.read()
	s := spent.Sub(w.from)
	s[Admission] += now.Sub(w.begin) - s.Sum()
	return s
}
