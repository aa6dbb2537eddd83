package node

import (
	"fmt"
	"slices"

	"rankfs/meta"
	"rankfs/meta/state"
)

// batchOf is the batch that a unit of the queue of a view is; the view's name has
// all options.
func batchOf(view string, unit int64) string {
	dataset, options, _ := meta.SplitView(view)
	v, err := meta.View{Dataset: dataset}.With(options)
	if err != nil {
		return fmt.Sprint("unit ", unit)
	}
	return unitName(uint64(unit), v.Ranks)
}

// causes are the words for why a batch came back, of its reader.
var causes = map[state.Cause]string{
	state.Closed:  "which ended or closed the queue",
	state.Down:    "whose node was seen down",
	state.Removal: "whose node was removed",
}

// blame says in a line why a batch was set aside.
func blame(m *state.Machine, s state.Suspect) string {
	last := s.By[len(s.By)-1]
	return fmt.Sprintf("%d readers gave it back, the last one of rank %d on %s, %s",
		len(s.By), last.Rank, m.HostOf(last.Node), causes[last.Cause])
}

// aside names the first batch of a queue that was set aside, and says why; nothing
// if none was.
func (m *member) aside(view string) string {
	all := slices.DeleteFunc(m.machine.Suspects(view), func(s state.Suspect) bool { return !s.Aside() })
	if len(all) == 0 {
		return ""
	}
	batch := batchOf(view, all[0].Unit)
	if len(all) > 1 {
		batch += fmt.Sprintf(", the first of %d", len(all))
	}
	return batch + ": " + blame(m.machine, all[0])
}
