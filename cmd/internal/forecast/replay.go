package forecast

import (
	"fmt"

	"rankfs/cache/simulate"
	"rankfs/cache/trace"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

// Follow has ranks read as a trace says, and as long as it goes on where no number
// of epochs was given.
func (j *Job) Follow(t *trace.Trace, all bool) {
	if j.trace = t; all {
		j.epochs = 0
	}
}

// replays checks that a view can be read as a trace says.
func (j *Job) replays() error {
	if j.trace == nil {
		return nil
	}
	if j.view.Order.Kind != meta.OrderNone {
		return meta.Worded(meta.ErrInvalid, "a trace is of a view in the source's order, and this one is order=%v: say %s@order=none", j.view.Order, j.set.Name)
	}
	passes := len(j.trace.Passes(j.trace.Steps))
	j.note("trace", float64(j.trace.Opens()), fmt.Sprintf("%s of %s, %d times through", terminal.Plural(j.trace.Opens(), "open"), terminal.Plural(j.trace.Steps, "step"), passes), "given")
	if j.epochs == 0 || j.epochs > passes {
		j.epochs = passes
	}
	j.epochs = min(j.epochs, maxEpochs)
	return nil
}

// replay has all ranks go through their batches as the trace does, each time through
// an epoch.
func (j *Job) replay(s *simulate.Scenario) {
	ranks := uint32(s.Nodes * s.Ranks)
	steps := (s.Partitions + int(ranks) - 1) / int(ranks)
	s.Bytes[0] = max(1, s.Bytes[0]*int64(s.Partitions)/int64(steps*int(ranks)))
	s.Partitions = steps * int(ranks)
	for _, pass := range j.trace.Passes(uint64(steps)) {
		reads := make([]uint32, 0, len(pass)*int(ranks))
		for _, step := range pass {
			for rank := range ranks {
				reads = append(reads, step*ranks+rank)
			}
		}
		s.Reads = append(s.Reads, reads)
	}
	s.Epochs = min(s.Epochs, len(s.Reads))
}
