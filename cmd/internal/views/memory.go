package views

import (
	"fmt"
	"log/slog"

	"rankfs/cache"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// Memory says how much memory the ranks of a node need for the batches that they have open
// together, whether the node has as much, and how much would be enough where an open finds no
// room. It may be used concurrently: none of its fields changes once Start of the views has
// set cache, and needs has a lock of its own.
type Memory struct {
	ram, nvme int64 // the budgets of the cache
	slab      int64 // the most that one slab may take of these
	ranks     *Ranks
	cache     *cache.Cache // nil before Start
	log       *slog.Logger
	needs     needs
}

// Warning warns of ranks of a view that need more on one node, for one batch each,
// than the cache has: ranks that take each step together could not. Of one rank it warns if
// there is no room for a batch at all.
func (m *Memory) Warning(v meta.View, of *batch.Version) string {
	here := m.ranks.ofANode(v.Ranks)
	need, memory := m.Need(v, of, here), m.ram+m.nvme
	who, together := fmt.Sprintf("%d ranks on a node, each with a batch of %s", here, sizes(need, here)), fmt.Sprintf("need %s together", meta.FormatRoom(need.Bytes))
	if here == 1 {
		who, together = "a rank, with a batch of "+sizes(need, here), "needs "+meta.FormatRoom(need.Bytes)
	}
	switch {
	case need.Bytes > memory:
		return fmt.Sprintf("%s, %s, and there are %s: %s", who, together, meta.FormatRoom(memory), howToGetRoom(need.Bytes))
	case m.tooLarge(need):
		return fmt.Sprintf("%s, %s, and there are no more than %s in one place, which a batch has to be in: %s", who, together, meta.FormatRoom(m.slab), howToGetRoom(need.Bytes))
	case need.Next > memory && here > 1:
		return fmt.Sprintf("%s, find room in %s, but not where each opens the next batch before it lets go of the last: "+
			"close and unmap that first, or %s", who, meta.FormatRoom(memory), howToGetRoom(need.Next))
	}
	return ""
}

// TooLarge is that warning of a view whose largest batch has no room even by itself, or nothing.
func (m *Memory) TooLarge(v meta.View, of *batch.Version) string {
	if !m.tooLarge(m.Need(v, of, m.ranks.ofANode(v.Ranks))) {
		return ""
	}
	return m.Warning(v, of)
}

func (m *Memory) tooLarge(need batch.Need) bool {
	return meta.WholePages(need.Largest) > m.slab
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
func (m *Memory) Need(v meta.View, of *batch.Version, ranks uint64) batch.Need {
	return m.needs.get(needKey{plan.New(v, of.Plans).ID(), ranks}, func() batch.Need { return of.Need(v, ranks) })
}

// howToGetRoom says how to get room for that many bytes.
func howToGetRoom(bytes int64) string {
	return fmt.Sprintf("mount with --ram %s or more, add --nvme DIR:SIZE, or make batches smaller", meta.FormatRoom(bytes))
}
