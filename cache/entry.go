package cache

import (
	"container/list"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
	"rankfs/cache/stall"
)

// An entry is a batch that is wanted or there.
type entry struct {
	key     Key
	plan    Plan // whose rank and step it is, or one of several
	rank    uint64
	step    uint64
	size    int64
	state   state
	done    chan struct{} // closed when state is ready or failed
	err     error         // why it failed
	waiters int           // opens waiting on done
	holders int           // opens not released
	opened  bool          // some rank has had it; what nobody had yet is kept longer
	ram     *ramFile      // where its bytes are: this
	file    *disks.Slab   // or this, on NVMe
	stale   bool          // that is not what it was, and the entry is out of the cache
	backing int32
	blob    bool // it is the packed form, of so many real bytes
	real    int64
	from    policy.Level  // where its bytes came from
	place   *list.Element // in spent
	slot    int           // in idle
	worth   float64       // as of its last use
	last    time.Time     // when that was
	gap     time.Duration // between uses; zero until there were two
	took    time.Duration // to fill it
	turn    *turn         // on whose account its fill goes
	wisher  *reader       // ahead of whom it is filled, if no open waited for it
	ahead   uint64        // which step that is of that reader's
	dense   bool          // hardly smaller if packed
	byHand  bool          // made ready because somebody said so
	stalled error         // what its fill waits for, while it waits
	clock   *stall.Clock  // of its fill, while state is filling
}

type state uint8

const (
	wanted state = iota
	filling
	ready
	failed
)

// want finds or makes the entry of a batch. mu is held.
func (c *Cache) want(p Plan, rank, step uint64) *entry {
	k := p.Key(rank, step)
	e := c.mu.entries[k]
	if e == nil {
		e = &entry{key: k, plan: p, rank: rank, step: step, slot: away, done: make(chan struct{})}
		c.mu.entries[k] = e
	}
	return e
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
