package views

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"rankfs/cache"
	"rankfs/fetch/batch"
	"rankfs/meta"
)

// MemoryWarning warns of ranks of a view that need more on one node, for one batch each,
// than the cache has: ranks that take each step together could not. Batches are taken to
// be of the mean size.
func (vs *Views) MemoryWarning(v meta.View, of *batch.Version) string {
	x := of.Index
	cut := v.Cut(x.Records(), x.Bytes(), uint64(x.Chunks()))
	if cut.N == 0 {
		return ""
	}
	batch := int64(float64(x.Bytes()) * min(1, float64(cut.Global)/float64(cut.Ranks)/float64(cut.N)))
	here := vs.ranksOfANode(v.Ranks)
	memory := vs.config.RAM + vs.config.NVMe
	if here < 2 {
		return ""
	}
	need := batch * int64(here)
	switch {
	case float64(batch)*float64(here) > float64(memory):
		return fmt.Sprintf("%d ranks on a node, each with a batch of %s, need %s together, and there are %s: %s",
			here, roughly(batch), roughly(need), roughly(memory), howToGetRoom(need))
	case float64(batch)*float64(here)*2 > float64(memory):
		return fmt.Sprintf("%d ranks on a node, each with a batch of %s, find room in %s, but not where each opens the next batch before it lets go of the last: "+
			"close and unmap that first, or %s", here, roughly(batch), roughly(memory), howToGetRoom(2*need))
	}
	return ""
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
	return fmt.Errorf("%w; %s", err, v.views.roomFor(c))
}

// LogShortage has the log say that an open waits for memory that ranks hold, or for a file.
func (vs *Views) LogShortage(c *cache.Shortage) {
	vs.config.Log.Warn("an open waits for room", "dataset", c.Plan.Dataset(), "cause", c.Error()+"; "+vs.roomFor(c))
}

// ShortageNow says what opens wait for now that find no room, or nothing.
func (vs *Views) ShortageNow() string {
	c := vs.cache.Shortage()
	if c == nil {
		return ""
	}
	return fmt.Sprintf("opens wait for room: %v; %s", c, vs.roomFor(c))
}

// Lacked is what ranks held of memory when an open last waited for some, and how much
// would have been enough; nil if none has waited.
func (vs *Views) Lacked() (c *cache.Shortage, enough int64) {
	if c = vs.cache.Lacked(); c == nil {
		return nil, 0
	}
	return c, vs.enough(c)
}

// enough is how much memory the ranks need that share it: for what they hold and wait for,
// and for a batch of each rank of the view that waits, as they take each step together.
func (vs *Views) enough(c *cache.Shortage) int64 {
	need := c.Held + max(c.Asked, c.Size)
	if p, ok := c.Plan.(*Batches); ok {
		need = max(need, c.Size*int64(vs.ranksHere(p.View())))
	}
	return need
}

// ranksHere is how many ranks of a view are on this node, as they have said or as they
// would be.
func (vs *Views) ranksHere(v meta.View) (n uint64) {
	for _, seat := range vs.Seats(vs.WouldBe(v)) {
		if meta.SameHost(seat.Host, vs.config.Host) {
			n += seat.Ranks
		}
	}
	return n
}

// roomFor says how the ranks that share memory would get on.
func (vs *Views) roomFor(c *cache.Shortage) string {
	if c.NoFile {
		return "close and unmap batches, or raise the daemon's limit of open files (LimitNOFILE=, ulimit -n) or vm.max_map_count"
	}
	return "close and unmap a batch before the next is opened, or " + howToGetRoom(vs.enough(c))
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
	return fmt.Sprintf("mount with --ram %s or more, add --nvme DIR:SIZE, or make batches smaller", roughly(bytes))
}

// roughly is a size for messages, and for --ram: rounded up, but to no more than a
// hundredth above.
func roughly(bytes int64) string {
	unit := int64(1)
	for unit*100<<10 <= bytes && unit < 1<<30 {
		unit <<= 10
	}
	return meta.FormatBytes(uint64((bytes + unit - 1) / unit * unit))
}
