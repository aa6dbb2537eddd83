package survey

import (
	"fmt"

	"rankfs/cmd/internal/control"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
)

// Bounds of DL-MPI's program. It does not stop half way.
const (
	maxChunks = 1 << 20 // some seconds
	MaxPoints = 1000    // of the curve, for a person to see
)

// Program divides all chunks of a dataset among ranks of equal speed.
func Program(v *batch.Version, seats []plan.Seat, w control.Weights) (*control.Program, error) {
	if !v.Source.Remote {
		return nil, meta.Worded(meta.ErrInvalid, "there is nothing to weigh: one host holds all of the source; leave out --alpha, --beta and --pareto")
	}
	if n := v.Index.Chunks(); n > maxChunks {
		return nil, fmt.Errorf("best division of %d chunks %w: it is for %d at most", n, meta.ErrInvalid, maxChunks)
	}
	hosts, hostOf := plan.Number(seats)
	near, sets, of := plan.NewTopology(v.Index, hosts), new(assign.Sets), make([]int32, v.Index.Chunks())
	for chunk := range of {
		var err error
		if of[chunk], err = sets.Number(near.Holders(chunk)); err != nil {
			return nil, err
		}
	}
	planner, err := assign.New(near.Cluster(hostOf), sets)
	if err != nil {
		return nil, err
	}
	s, err := planner.Static(of, assign.Weights{Local: w.Local, Time: w.Time})
	if err != nil {
		return nil, err
	}
	p := &control.Program{Chunks: len(of), Best: control.Point(s.Curve[s.Best]), Points: len(s.Curve)}
	for i := range min(len(s.Curve), MaxPoints) {
		if len(s.Curve) > MaxPoints {
			i = i * (len(s.Curve) - 1) / (MaxPoints - 1) // the first, the last, and some between
		}
		p.Curve = append(p.Curve, control.Point(s.Curve[i]))
	}
	return p, nil
}
