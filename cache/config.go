package cache

import (
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"time"

	"rankfs/cache/disks"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// A Backing makes a file known to the kernel, so that a batch opened with the
// id is read and mapped without the daemon. Both may be called concurrently.
type Backing interface {
	Register(fd int) (id int32, err error)
	Unregister(id int32)
}

// Config is the resources that a cache may use, and its callbacks.
type Config struct {
	RAMBytes  int64       // budget of the RAM tier, in real bytes
	NVMe      []disks.Dir // of the NVMe tier; without any there is none
	NVMeFloor disks.Floor
	Backing   Backing
	Policy    string // of policy.Names; empty: the first
	Log       *slog.Logger
	Stalls    *stall.Table // has the clocks of fills; nil: one of its own

	// Shortage is told that an open waits for memory that ranks hold, or for a file, at
	// most once a minute.
	Shortage func(*Shortage)
	// Holds reports whether a thread is all of its process, which has a batch open.
	// nil: that is not known, and no wait for memory is refused before its time.
	Holds func(thread int32, rank, step uint64) bool

	// Workers fill slabs. One per core: a fill is a copy, bound by memory. There
	// are more where a source gives more to more at a time.
	Workers int
	// OpenTimeout bounds the wait of one open. Long enough for a cold disk
	// to bring a large batch, short enough that a job's log tells the story.
	OpenTimeout time.Duration
	// MaxAhead bounds how many batches are made ready ahead of one rank; zero: what
	// the source's latency, the rank's pace and memory say is all.
	MaxAhead int
	// Idle is how long a rank may be silent before it no longer counts as
	// reading. An epoch's step may well take a minute.
	Idle time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Workers == 0 {
		c.Workers = max(2, runtime.NumCPU())
	}
	if c.OpenTimeout == 0 {
		c.OpenTimeout = 2 * time.Minute
	}
	if c.MaxAhead == 0 {
		c.MaxAhead = math.MaxInt
	}
	if c.Idle == 0 {
		c.Idle = 5 * time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Stalls == nil {
		c.Stalls = stall.NewTable(time.Now)
	}
	return c, c.Check()
}

// LargestSlab is the most that a slab may take, in memory or on one disk.
func (c Config) LargestSlab() int64 {
	most := c.RAMBytes
	for _, d := range c.NVMe {
		most = max(most, d.Bytes)
	}
	return most
}

// Check refuses budgets that no cache can have, before anything is made.
func (c Config) Check() error {
	if c.RAMBytes < minRAM {
		return fmt.Errorf("ram budget of %s %w: give %s or more", meta.FormatBytes(uint64(c.RAMBytes)), meta.ErrInvalid, meta.FormatBytes(minRAM))
	}
	return disks.Config{Dirs: c.NVMe}.Check()
}

// minRAM holds a few huge pages; with less no batch could be served from RAM.
const minRAM = 16 << 20
