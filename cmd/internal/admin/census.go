package admin

import (
	"context"
	"errors"
	"slices"

	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/control"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
)

// Bounds of a census, so that a user waits for seconds at most.
const (
	maxSteps     = 4096
	maxPositions = 1 << 22 // each is looked up in the index: 2.6 s for an order=full of 128 ranks
)

// recordsAtOnce is how many records are counted at a time.
const recordsAtOnce = 4096

// sample chooses the steps to look at: all, or some at equal distances.
func sample(c meta.Cut) []uint64 {
	size := max(1, min(c.Global, c.N), c.Ranks)
	steps := c.Steps()
	picks := make([]uint64, min(steps, maxSteps, max(1, maxPositions/size)))
	n := uint64(len(picks))
	for i := range n {
		picks[i] = i*(steps/n) + i*(steps%n)/n
	}
	return picks
}

// survey adds up what the ranks read in an epoch, as they sit and as it would be
// were they fixed.
func (n *planning) survey(ctx context.Context, v meta.View, d *catalog.Dataset, seats []plan.Seat, p *control.Plan) error {
	x := d.Version.Index
	hosts, hostOf := plan.Number(seats)
	k := census{index: x, hostOf: hostOf, hosts: hosts, near: plan.NewTopologyByRack(x, hosts)}
	if !d.Version.Source.Remote {
		k.home = d.Version.Source.Host(n.Host)
	}
	planned := plan.New(v, d.Version.Plans)
	cut := planned.Cut()
	if size := min(cut.Global, cut.N); size > maxPositions {
		return meta.Worded(meta.ErrInvalid, "steps of %d records are too many to count: use at most %d", size, maxPositions)
	}
	steps := sample(cut)
	p.Steps, p.Looked, p.Racks = cut.Steps(), uint64(len(steps)), k.near.Racks()
	fixed, err := k.take(ctx, planned, steps) // nothing is placed yet
	if err != nil {
		return err
	}
	chosen := fixed
	if d.Version.Source.Remote {
		err = planned.Place(seats)
	}
	if err == nil && planned.Placed() {
		chosen, err = k.take(ctx, planned, steps)
	}
	p.Nodes = make([]control.Reads, hosts.Len())
	for number, host := range hosts.Names() {
		i := int32(number)
		p.Nodes[i] = control.Reads{
			Host: host, Rack: k.near.Rack(i), Bytes: sum(chosen.bytes[i]),
			Local: chosen.bytes[i][assign.Local], Near: chosen.bytes[i][assign.Rack], Strict: fixed.bytes[i][assign.Local],
		}
	}
	for _, i := range hostOf {
		p.Nodes[i].Ranks++
	}
	p.Plan, p.Strict = chosen.share(), fixed.share()
	if err == nil {
		p.Serving, err = serving(x, chosen.remote, hosts, hostOf)
	}
	return err
}

// A census counts what the ranks on each host read.
type census struct {
	index  *index.Index
	hosts  *plan.Hosts
	hostOf []int32 // of each rank
	near   *plan.Topology
	home   string // that has all of it, if the index does not say where chunks are
}

// A tally is the outcome of a census.
type tally struct {
	bytes  [][3]int64   // by host and assign.Distance
	ranks  []int64      // bytes of each
	remote *remoteReads // chunks that are read whole, by hosts that do not hold them
}

func (k census) take(ctx context.Context, p *plan.Plan, steps []uint64) (tally, error) {
	t := tally{make([][3]int64, k.hosts.Len()), make([]int64, len(k.hostOf)), new(remoteReads)}
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
func (k census) count(ctx context.Context, p *plan.Plan, rank, step uint64, t tally) error {
	host, x := k.hostOf[rank], k.index
	add := func(chunk int, bytes int64) assign.Distance {
		distance := k.distance(chunk, host)
		t.bytes[host][distance] += bytes
		t.ranks[rank] += bytes
		return distance
	}
	if p.View().Step.Unit == meta.UnitChunk {
		chunks, err := p.AppendChunks(nil, rank, step)
		for _, c := range chunks {
			if add(c, x.ChunkBytes(c)) != assign.Local {
				t.remote.add(c, host)
			}
		}
		return errors.Join(err, ctx.Err())
	}
	return p.Each(rank, step, 0, make([]uint64, 0, min(recordsAtOnce, p.Records(rank, step))), func(records []uint64) error {
		for _, r := range records {
			add(x.ChunkOf(r), x.Size(r))
		}
		return ctx.Err()
	})
}

// distance is how far a chunk is from the host of that number.
func (k census) distance(chunk int, host int32) assign.Distance {
	switch {
	case k.home == "":
		return k.near.Distance(k.near.Holders(chunk), host)
	case meta.SameHost(k.home, k.hosts.Names()[host]):
		return assign.Local
	}
	return assign.Remote
}

func sum(bytes [3]int64) int64 {
	return bytes[assign.Local] + bytes[assign.Rack] + bytes[assign.Remote]
}

func (t tally) share() control.Share {
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
