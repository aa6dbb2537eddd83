package dispatch

import (
	"fmt"
	"slices"

	"rankfs/meta/state"
)

// causes are the words for why a batch came back, of its reader.
var causes = map[state.Cause]string{
	state.Closed:  "which ended or closed the queue",
	state.Down:    "whose node was seen down",
	state.Removal: "whose node was removed",
}

// blame says in a line why a batch was set aside.
func blame(m Hosts, s state.Suspect) string {
	last := s.By[len(s.By)-1]
	return fmt.Sprintf("%d readers gave it back, the last one of rank %d on %s, %s",
		len(s.By), last.Rank, m.HostOf(last.Node), causes[last.Cause])
}

// FirstSetAside names the first batch of a queue that was set aside, and says why. It is
// empty if none was, as far as this node knows.
func FirstSetAside(m Suspects, view string) string {
	all := slices.DeleteFunc(m.Suspects(view), func(s state.Suspect) bool { return !s.Aside() })
	if len(all) == 0 {
		return ""
	}
	batch := BatchOf(view, all[0].Unit)
	if len(all) > 1 {
		batch += fmt.Sprintf(", the first of %d", len(all))
	}
	return batch + ": " + blame(m, all[0])
}
