package cache

import (
	"container/list"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
	"rankfs/cache/stall"
)

// An entry is a batch that is wanted or there. The cache's lock guards what changes
// of it, but for its form: that belongs to who fills it, then stays what it is,
// and at the end belongs to who took the entry out of the cache.
type entry struct {
	batch
	state   state
	done    chan struct{} // closed when state is ready or failed
	err     error         // why it failed
	waiters int           // opens waiting on done
	holders int           // opens not released
	place   *list.Element // in spent, if there are none of both,
	slot    int           // or in idle
	worth   float64       // as of its last use
	stale   bool          // its bytes are not what they were, and it is out of the cache
	dense   bool          // hardly smaller if packed
	making
	form
	history
}

// A batch is what a rank opens at a step of a plan, or of one of several that
// have it.
type batch struct {
	key        Key
	plan       Plan
	rank, step uint64
}

// A making is for whom an entry is filled, and how that goes.
type making struct {
	turn    *turn        // on whose account it is
	wisher  *reader      // ahead of whom it is, if no open waited for it
	ahead   uint64       // which step that is of that reader's
	byHand  bool         // somebody said so
	clock   *stall.Clock // of the fill, while state is filling
	stalled error        // what it waits for, while it waits
}

// A form is where the bytes of an entry are: in one of the first three.
type form struct {
	ram     *ramFile
	file    *disks.Slab // on NVMe
	blob    bool        // packed, and not what an open gets
	size    int64       // of the batch
	real    int64       // that it takes, if packed
	backing int32
	from    policy.Level // where they came from
}

// A history is what the worth of an entry is guessed from.
type history struct {
	opened bool          // some rank has had it; what nobody had yet is kept longer
	last   time.Time     // when it was used
	gap    time.Duration // between uses; zero until there were two
	took   time.Duration // to fill it
}

type state uint8

const (
	filling state = iota // or about to be
	ready
	failed
)

// want finds the entry of a batch, or makes one, which is then the caller's to
// begin, and to have filled. mu is held.
func (c *Cache) want(p Plan, rank, step uint64) (e *entry, mine bool) {
	k := p.Key(rank, step)
	if e = c.mu.entries[k]; e != nil {
		return e, false
	}
	e = &entry{batch: batch{k, p, rank, step}, slot: away, done: make(chan struct{})}
	c.mu.entries[k] = e
	return e, true
}

// begin says on whose account an entry is filled, and what that begins with. mu
// is held.
func (c *Cache) begin(e *entry, t *turn, with stall.Cause) {
	e.turn, e.clock = t, c.config.Stalls.Clock(with)
}

// resting reports whether nobody holds e, so that it may be evicted.
func (e *entry) resting() bool { return e.place != nil || e.slot != away }

func (e *entry) fd() int {
	if e.ram != nil {
		return e.ram.fd
	}
	return int(e.file.Fd())
}

func (e *entry) tier() string {
	if e.file != nil {
		return "nvme"
	}
	return "ram"
}

func (e *entry) level() policy.Level {
	switch {
	case e.blob:
		return policy.Packed
	case e.file != nil:
		return policy.Disk
	}
	return policy.RAM
}
