package survey

import (
	"context"
	"slices"

	"rankfs/cmd/internal/control"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
)

// Bounds of a census, so that a user waits for seconds at most.
const (
	MaxSteps     = 4096
	MaxPositions = 1 << 22 // each is looked up in the index: 2.6 s for an order=full of 128 ranks
)

// sample chooses the steps to look at: all, or some at equal distances.
func sample(c meta.Cut) []uint64 {
	size := max(1, min(c.Global, c.N), c.Ranks)
	steps := c.Steps()
	picks := make([]uint64, min(steps, MaxSteps, max(1, MaxPositions/size)))
	n := uint64(len(picks))
	for i := range n {
		picks[i] = i*(steps/n) + i*(steps%n)/n
	}
	return picks
}

// A census counts what the ranks on each host read.
type census struct {
	of     *batch.Version
	hosts  *plan.Hosts
	hostOf []int32 // of each rank
	near   *plan.Topology
	holder string // that has all of it, if the index does not say where chunks are
}

// counts are the outcome of a census.
type counts struct {
	bytes  [][3]int64   // by host and assign.Distance
	ranks  []int64      // bytes of each
	remote *remoteReads // chunks that are read whole, by hosts that do not hold them
}

func (k census) take(ctx context.Context, p *plan.Plan, steps []uint64) (counts, error) {
	t := counts{make([][3]int64, k.hosts.Len()), make([]int64, len(k.hostOf)), new(remoteReads)}
	for _, step := range steps {
		for rank := range p.Cut().Ranks {
			if err := k.count(ctx, p, rank, step, t); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

// count adds one batch.
func (k census) count(ctx context.Context, p *plan.Plan, rank, step uint64, t counts) error {
	host, whole := k.hostOf[rank], p.View().ByChunk()
	return k.of.EachChunk(p, rank, step, func(chunk int, bytes int64) error {
		distance := k.distance(chunk, host)
		t.bytes[host][distance] += bytes
		t.ranks[rank] += bytes
		if whole && distance != assign.Local {
			t.remote.add(chunk, host)
		}
		return ctx.Err()
	})
}

// distance is the distance of a chunk from the host of that number.
func (k census) distance(chunk int, host int32) assign.Distance {
	switch {
	case k.holder == "":
		return k.near.Distance(k.near.Holders(chunk), host)
	case meta.SameHost(k.holder, k.hosts.Names()[host]):
		return assign.Local
	}
	return assign.Remote
}

func sum(bytes [3]int64) int64 {
	return bytes[assign.Local] + bytes[assign.Rack] + bytes[assign.Remote]
}

func (t counts) share() control.Share {
	var all [3]int64
	for _, bytes := range t.bytes {
		for distance, n := range bytes {
			all[distance] += n
		}
	}
	s := control.Share{Local: 1, Balance: 1, Bytes: control.Bytes{Local: all[assign.Local], Near: all[assign.Rack], Remote: all[assign.Remote]}}
	if bytes := sum(all); bytes > 0 {
		s.Local = float64(s.Bytes.Local) / float64(bytes)
		s.Balance = float64(slices.Max(t.ranks)) * float64(len(t.ranks)) / float64(bytes)
	}
	return s
}
