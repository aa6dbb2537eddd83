package survey

import (
	"context"

	"rankfs/cmd/internal/control"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
)

// Count adds up in p what the ranks of a view read in an epoch, as they sit and as it
// would be were they fixed. Holder is the host that has all of the source, if its index
// does not say where chunks are.
func Count(ctx context.Context, v meta.View, of *batch.Version, holder string, seats []plan.Seat, p *control.Survey) error {
	x := of.Index
	hosts, hostOf := plan.Number(seats)
	k := census{of: of, hostOf: hostOf, hosts: hosts, near: plan.NewTopologyByRack(x, hosts), holder: holder}
	planned := plan.New(v, of.Plans)
	cut := planned.Cut()
	if size := min(cut.Global, cut.N); size > MaxPositions {
		return meta.Worded(meta.ErrInvalid, "steps of %d records are too many to count: use at most %d", size, MaxPositions)
	}
	steps := sample(cut)
	p.Steps, p.Looked, p.Racks = cut.Steps(), uint64(len(steps)), k.near.Racks()
	fixed, err := k.take(ctx, planned, steps) // nothing is placed yet
	if err != nil {
		return err
	}
	chosen := fixed
	if of.Source.Remote {
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
