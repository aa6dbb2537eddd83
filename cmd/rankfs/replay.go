package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"rankfs/cache/simulate"
	"rankfs/cache/trace"
	"rankfs/meta"
)

// traced finds the trace that is to be replayed: in a file, or what was learnt for
// a dataset.
func (p *program) traced(c *cobra.Command, name string) (*trace.Trace, error) {
	if _, err := os.Stat(name); err == nil {
		t, err := readTrace(name)
		if err != nil {
			return nil, usage(c, err)
		}
		return &t, nil
	}
	if meta.CheckName(name) != nil {
		return nil, usage(c, failf(meta.ErrInvalid, "trace %s is neither a file nor the name of a dataset", name))
	}
	d, err := p.daemon()
	if err != nil {
		return nil, err
	}
	learnt, err := d.Trace(c.Context(), name)
	if errors.Is(err, meta.ErrNotExist) {
		return nil, failf(meta.ErrNotExist, "trace %s: no such file, and nothing was learnt for a dataset of that name; see what is with: rankfs trace ls", name)
	}
	if err != nil {
		return nil, err
	}
	t, err := trace.Parse(learnt.Text)
	return &t, err
}

// replays checks that a view can be read as a trace says.
func (j *job) replays() error {
	if j.trace == nil {
		return nil
	}
	if j.view.Order.Kind != meta.OrderNone {
		return failf(meta.ErrInvalid, "a trace is of a view in the source's order, and this one is order=%v: say %s@order=none", j.view.Order, j.set.Name)
	}
	passes := len(j.trace.Passes(j.trace.Steps))
	j.note("trace", float64(j.trace.Opens()), fmt.Sprintf("%s of %s, %d times through", plural(j.trace.Opens(), "open"), plural(j.trace.Steps, "step"), passes), "given")
	if j.epochs == 0 || j.epochs > passes {
		j.epochs = passes
	}
	j.epochs = min(j.epochs, mostEpochs)
	return nil
}

// replay has all ranks go through their batches as the trace does, each time through
// an epoch.
func (j *job) replay(s *simulate.Scenario) {
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
