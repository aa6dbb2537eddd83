package views

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"rankfs/cache"
	"rankfs/fetch/batch"
	"rankfs/meta"
)

// LogShortage has the log say that an open waits for memory that ranks hold, or for a file.
func (m *Memory) LogShortage(c *cache.Shortage) {
	m.log.Warn("an open waits for room", "dataset", datasetOf(c.Series), "cause", c.Error()+"; "+m.roomFor(c, 0))
}

// datasetOf is the name of the dataset of a series. Chunks of which no view here is known,
// as those for another node, go by their source; a series of the shuffle pool says its stage.
func datasetOf(s *cache.Series) string {
	switch of := s.Filler.(type) {
	case *Batches:
		return of.View().Dataset
	case *chunkSlabs:
		if r := of.chunks.Readers; r != nil {
			return r.View().Dataset
		}
		return of.chunks.Version.Source.URI
	}
	return s.Dataset
}

// ShortageNow says what opens wait for now that find no room, or nothing.
func (m *Memory) ShortageNow() string {
	if c := m.cache.Shortage(); c != nil {
		return m.describe(c, 0)
	}
	return ""
}

// ShortageOf says what opens of a view wait for now, if they find no room, with advice that is
// enough for it. That another view's batches are too large is nothing to this one.
func (m *Memory) ShortageOf(v meta.View, of *batch.Version) string {
	c := m.cache.Shortage()
	if c == nil || c.TooLarge && !isOf(c.Series, v) {
		return ""
	}
	return m.describe(c, m.Need(v, of, m.ranks.ofANode(v.Ranks)).Bytes)
}

// isOf reports whether a series is of a view, in whatever epoch.
func isOf(s *cache.Series, v meta.View) bool {
	p, ok := s.Filler.(*Batches)
	if !ok {
		return false
	}
	v.Epoch = p.View().Epoch
	return p.View() == v
}

// describe says what opens find no room for, and how they would, with so many bytes at least.
func (m *Memory) describe(c *cache.Shortage, least int64) string {
	if c.TooLarge {
		return fmt.Sprintf("opens of %s find no room: %s", datasetOf(c.Series), m.roomFor(c, least))
	}
	return fmt.Sprintf("opens wait for room: %v; %s", c, m.roomFor(c, least))
}

// Lacked is the memory that ranks held when an open last waited for some, and how much
// would have been enough; nil if none has waited.
func (m *Memory) Lacked() (c *cache.Shortage, enough int64) {
	if c = m.cache.Lacked(); c == nil {
		return nil, 0
	}
	return c, m.enough(c)
}

// enough is the memory that the ranks need which share it: for what they hold and wait for,
// and for a batch of each rank of the view that waits, as they take each step together.
func (m *Memory) enough(c *cache.Shortage) int64 {
	need := c.Held + max(c.Asked, c.Size)
	if p, ok := c.Series.Filler.(*Batches); ok {
		if here := m.ranks.here(p.View()); here > 0 {
			need = max(need, m.Need(p.View(), p.Version, here).Bytes)
		}
	}
	return need
}

// roomFor says how the ranks that share memory would get on, with so many bytes at least.
func (m *Memory) roomFor(c *cache.Shortage, least int64) string {
	least = max(least, m.enough(c))
	if p, ok := c.Series.Filler.(*Batches); ok && c.TooLarge {
		return cmp.Or(m.TooLarge(p.View(), p.Version), howToGetRoom(least)) // of very many steps not all are looked at
	}
	if c.NoFile {
		return "close and unmap batches, or raise the daemon's limit of open files (LimitNOFILE=, ulimit -n) or vm.max_map_count"
	}
	return "close and unmap a batch before the next is opened, or " + howToGetRoom(least)
}

// Holds reports whether a thread is all of its process, which has a batch open by
// any name that ends as that of the batch does. It is asked only about threads
// whose open waits.
func Holds(thread int32, rank, step uint64) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", thread))
	if err != nil || len(tasks) != 1 {
		return false
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", thread))
	if err != nil {
		return false
	}
	for _, fd := range fds {
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", thread, fd.Name()))
		if err == nil && strings.HasSuffix(link, fmt.Sprintf("/rank-%d/batch-%06d", rank, step)) {
			return true
		}
	}
	return false
}
