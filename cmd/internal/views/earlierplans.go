package views

import (
	"encoding/hex"
	"slices"

	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// An earlierPlan is one by which chunks were read, and the nodes of its ranks: they
// may have them still.
type earlierPlan struct {
	plan  *plan.Plan
	nodes state.Runs
}

// maxEarlierPlans bounds the settled plans whose readers are asked for a chunk: the epoch
// before, mostly, and the one before that or another job.
const maxEarlierPlans = 2

// earlierPlans are the last settled plans of a dataset whose batches are chunks, without
// that of v.
func (r *Ranks) earlierPlans(v meta.View, of *batch.Version) (all []earlierPlan) {
	hash, own := hex.EncodeToString(of.ID[:]), v.String()
	for _, settled := range slices.Backward(r.state.SettledPlans()) {
		if settled.Index != hash || settled.View == own {
			continue
		}
		name, options, _ := meta.SplitView(settled.View)
		was, err := meta.View{Dataset: name, Ranks: 1}.With(options)
		if err != nil || !was.ByChunk() {
			continue
		}
		p := plan.New(was, of.Plans)
		if p.Place(r.Seats(settled.Nodes)) != nil {
			continue
		}
		if all = append(all, earlierPlan{p, settled.Nodes}); len(all) == maxEarlierPlans {
			break
		}
	}
	return all
}

// reader is the node whose rank read a chunk, if that is known or soon found out.
func (f earlierPlan) reader(chunk int) (node string, ok bool) {
	rank, ok := f.plan.Reader(chunk)
	if !ok {
		return "", false
	}
	for _, run := range f.nodes {
		if rank < run.Count {
			return run.Node, true
		}
		rank -= run.Count
	}
	return "", false
}
