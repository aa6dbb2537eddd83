package forecast

import (
	"context"

	"rankfs/cache/policy"
	"rankfs/cache/simulate"
	"rankfs/cmd/internal/control"
)

// Predict simulates the job under each policy, and looks for what would remove
// the stall under the best.
func (j *Job) Predict(ctx context.Context, names []string) (*Prediction, error) {
	p := &Prediction{ViewName: control.NameOf(j.view.Short(j.own), j.view.String()), epoch: j.view.Epoch, Records: j.set.Records, Bytes: j.set.Bytes, Nodes: j.nodes, Ranks: j.view.Ranks, Facts: j.facts}
	if j.set.Reason != "" {
		p.Warning = control.Unreadable(j.set.Name, j.set.Reason)
	}
	s, size := j.scenario(batchesRun)
	p.Scale, p.Steps = size.by, j.cut().Steps()
	if j.epochs > 1 && j.trace == nil {
		s.Epochs++ // the last one that is shown is followed by another, as all are
	}
	best := 0
	for i, name := range names {
		out, err := simulate.Run(ctx, s, policyOf(name))
		if err != nil {
			return nil, err
		}
		out.Epochs = out.Epochs[:min(j.epochs, len(out.Epochs))]
		p.Policies = append(p.Policies, prospectOf(name, out, size.by))
		if p.Policies[i].last().Seconds < p.Policies[best].last().Seconds {
			best = i
		}
	}
	p.Best = names[best]
	if p.Policies[best].last().Stall <= simulate.Calm {
		return p, nil
	}
	small, size := j.scenario(batchesSearched)
	found, err := simulate.Remedies(ctx, small, policyOf(p.Best))
	p.Remedies = j.remedies(found, size)
	return p, err
}

func policyOf(name string) func() policy.Policy {
	return func() policy.Policy {
		p, err := policy.New(name)
		if err != nil {
			panic(err) // it was asked before
		}
		return p
	}
}

// A dataset of more batches is simulated on a smaller scale: so many take a
// fraction of a second.
const (
	batchesRun      = 1 << 15
	batchesSearched = 1 << 11
)
