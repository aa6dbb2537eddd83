package views

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"rankfs/cache"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// MemoryWarning warns of ranks of a view that need more on one node, for one batch each,
// than the cache has: ranks that take each step together could not. Of one rank it warns if
// there is no room for a batch at all.
func (vs *Views) MemoryWarning(v meta.View, of *batch.Version) string {
	here := vs.ranksOfANode(v.Ranks)
	need, memory := vs.Need(v, of, here), vs.config.RAM+vs.config.NVMe
	who, together := fmt.Sprintf("%d ranks on a node, each with a batch of %s", here, sizes(need, here)), fmt.Sprintf("need %s together", meta.FormatRoom(need.Bytes))
	if here == 1 {
		who, together = "a rank, with a batch of "+sizes(need, here), "needs "+meta.FormatRoom(need.Bytes)
	}
	switch {
	case need.Bytes > memory:
		return fmt.Sprintf("%s, %s, and there are %s: %s", who, together, meta.FormatRoom(memory), howToGetRoom(need.Bytes))
	case vs.tooLarge(need):
		return fmt.Sprintf("%s, %s, and there are no more than %s in one place, which a batch has to be in: %s", who, together, meta.FormatRoom(vs.config.Slab), howToGetRoom(need.Bytes))
	case need.Next > memory && here > 1:
		return fmt.Sprintf("%s, find room in %s, but not where each opens the next batch before it lets go of the last: "+
			"close and unmap that first, or %s", who, meta.FormatRoom(memory), howToGetRoom(need.Next))
	}
	return ""
}

// TooLarge is that warning of a view whose largest batch has no room even by itself, or nothing.
func (vs *Views) TooLarge(v meta.View, of *batch.Version) string {
	if !vs.tooLarge(vs.Need(v, of, vs.ranksOfANode(v.Ranks))) {
		return ""
	}
	return vs.MemoryWarning(v, of)
}

func (vs *Views) tooLarge(need batch.Need) bool {
	return meta.WholePages(need.Largest) > vs.config.Slab
}

// sizes says how large the batches of ranks are that need so much, and by what that is known.
func sizes(need batch.Need, ranks uint64) string {
	text := meta.FormatRoom(need.Largest)
	if meta.WholePages(need.Largest)*int64(ranks) != need.Bytes {
		text = "up to " + text
	}
	switch {
	case need.Looked == 0:
		text += " on the mean"
	case need.Looked < need.Steps:
		text += fmt.Sprintf(" in %d of %d steps that were looked at", need.Looked, need.Steps)
	}
	return text
}

// Need is the memory that so many ranks of a view on one node need together.
func (vs *Views) Need(v meta.View, of *batch.Version, ranks uint64) batch.Need {
	return vs.needs.get(needKey{plan.New(v, of.Plans).ID(), ranks}, func() batch.Need { return of.Need(v, ranks) })
}

// ranksOfANode is the ranks of one node, if they are spread evenly over the nodes.
func (vs *Views) ranksOfANode(ranks uint64) uint64 {
	nodes := uint64(0)
	for _, m := range vs.config.State.Nodes() {
		if m.Up && !m.Drained {
			nodes++
		}
	}
	return (ranks + max(nodes, 1) - 1) / max(nodes, 1)
}

// withRoomFor adds to the error of an open that was refused for want of memory what would be
// enough for all ranks that the node has of the view.
func (v *View) withRoomFor(err error) error {
	var c *cache.Shortage
	if !errors.As(err, &c) {
		return err
	}
	return fmt.Errorf("%w; %s", err, v.views.roomFor(c, 0))
}

// LogShortage has the log say that an open waits for memory that ranks hold, or for a file.
func (vs *Views) LogShortage(c *cache.Shortage) {
	vs.config.Log.Warn("an open waits for room", "dataset", datasetOf(c.Series), "cause", c.Error()+"; "+vs.roomFor(c, 0))
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
func (vs *Views) ShortageNow() string {
	if c := vs.cache.Shortage(); c != nil {
		return vs.describe(c, 0)
	}
	return ""
}

// ShortageOf says what opens of a view wait for now, if they find no room, with advice that is
// enough for it. That another view's batches are too large is nothing to this one.
func (vs *Views) ShortageOf(v meta.View, of *batch.Version) string {
	c := vs.cache.Shortage()
	if c == nil || c.TooLarge && !isOf(c.Series, v) {
		return ""
	}
	return vs.describe(c, vs.Need(v, of, vs.ranksOfANode(v.Ranks)).Bytes)
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
func (vs *Views) describe(c *cache.Shortage, least int64) string {
	if c.TooLarge {
		return fmt.Sprintf("opens of %s find no room: %s", datasetOf(c.Series), vs.roomFor(c, least))
	}
	return fmt.Sprintf("opens wait for room: %v; %s", c, vs.roomFor(c, least))
}

// Lacked is the memory that ranks held when an open last waited for some, and how much
// would have been enough; nil if none has waited.
func (vs *Views) Lacked() (c *cache.Shortage, enough int64) {
	if c = vs.cache.Lacked(); c == nil {
		return nil, 0
	}
	return c, vs.enough(c)
}

// enough is the memory that the ranks need which share it: for what they hold and wait for,
// and for a batch of each rank of the view that waits, as they take each step together.
func (vs *Views) enough(c *cache.Shortage) int64 {
	need := c.Held + max(c.Asked, c.Size)
	if p, ok := c.Series.Filler.(*Batches); ok {
		if here := vs.ranksHere(p.View()); here > 0 {
			need = max(need, vs.Need(p.View(), p.Version, here).Bytes)
		}
	}
	return need
}

// ranksHere is the number of ranks of a view on this node, as they have said or as they
// would be.
func (vs *Views) ranksHere(v meta.View) (n uint64) {
	for _, seat := range vs.Seats(vs.WouldBe(v)) {
		if meta.SameHost(seat.Host, vs.config.Host) {
			n += seat.Ranks
		}
	}
	return n
}

// roomFor says how the ranks that share memory would get on, with so many bytes at least.
func (vs *Views) roomFor(c *cache.Shortage, least int64) string {
	least = max(least, vs.enough(c))
	if p, ok := c.Series.Filler.(*Batches); ok && c.TooLarge {
		return cmp.Or(vs.TooLarge(p.View(), p.Version), howToGetRoom(least)) // of very many steps not all are looked at
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

// howToGetRoom says how to get room for that many bytes.
func howToGetRoom(bytes int64) string {
	return fmt.Sprintf("mount with --ram %s or more, add --nvme DIR:SIZE, or make batches smaller", meta.FormatRoom(bytes))
}
