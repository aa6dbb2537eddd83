package simulate

import (
	"context"
	"math"

	"rankfs/cache/policy"
)

// A Remedy is one thing that would remove the stall, if there were so much of
// it and everything else stayed as it is.
type Remedy struct {
	What  Resource
	Bytes float64 // or bytes a second
}

// A Resource is something that a job can be given more of.
type Resource uint8

const (
	Memory Resource = iota // of a node
	SourceRate
	LinkRate
	DiskRate
	resources
)

// Calm is the share of its time that a rank may wait and not be stalled.
const Calm = 0.01

// Remedies finds how much of each resource alone would calm the last epoch; what
// would not, however much there were, is left out. It runs the scenario some
// dozens of times, so that should be a small one.
func Remedies(ctx context.Context, s Scenario, by func() policy.Policy) (found []Remedy, err error) {
	for what := range resources {
		low := s.has(what)
		if math.IsInf(low, 1) {
			continue
		}
		bytes, ok, err := s.search(ctx, what, low, by)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, Remedy{what, bytes})
		}
	}
	return found, nil
}

// has is the amount of a resource: infinite of what is not used.
func (s *Scenario) has(what Resource) float64 {
	amount := [...]float64{Memory: float64(s.Memory), SourceRate: s.Costs.Source, LinkRate: s.Costs.Link, DiskRate: s.Costs.DiskRead}[what]
	if amount <= 0 || what == LinkRate && s.Nodes < 2 || what == DiskRate && s.Disk == 0 {
		return math.Inf(1)
	}
	return amount
}

// with is the scenario with another amount.
func (s Scenario) with(what Resource, amount float64) Scenario {
	switch what {
	case Memory:
		s.Memory = int64(math.Min(amount, 1<<60))
	case SourceRate:
		s.Costs.Stream *= math.Max(1, amount/s.Costs.Source) // more of it is faster, too
		s.Costs.Source = amount
	case LinkRate:
		s.Costs.Link = amount
	case DiskRate:
		s.Costs.DiskWrite *= amount / s.Costs.DiskRead
		s.Costs.DiskRead = amount
	}
	return s
}

// search finds the least amount that suffices, to 3 %, between low and a
// thousand times that.
func (s *Scenario) search(ctx context.Context, what Resource, low float64, by func() policy.Policy) (amount float64, ok bool, err error) {
	calm := func(amount float64) bool {
		if err != nil {
			return false
		}
		var o Outcome
		if o, err = Run(ctx, s.with(what, amount), by); err != nil {
			return false
		}
		return o.Last().Stalled() <= Calm
	}
	if !calm(1024 * low) {
		return 0, false, err
	}
	high := low
	for !calm(high) && high < 1024*low && err == nil {
		low, high = high, 2*high
	}
	for high/low > 1.03 && err == nil {
		if mid := math.Sqrt(low * high); calm(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high, err == nil, err
}
