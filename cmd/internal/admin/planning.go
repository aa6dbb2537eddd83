package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/survey"
	"rankfs/cmd/internal/views"
	"rankfs/fetch/hdfs"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// planning reports which rank reads what.
type planning struct {
	host  string // of this node
	views *views.Views
	state interface {
		nodes
		SettledPlan(view string) (state.SettledPlan, bool)
	}
	commands Commands
	hdfs     interface{ Stats() hdfs.Stats }
	drop     func(dataset string) // has the names of a dataset looked up again
}

// Plan reports which rank reads what in one epoch of a view, for a user to judge it,
// and settles or unsettles where the ranks are.
func (n *planning) Plan(ctx context.Context, r control.PlanRequest) (control.Survey, error) {
	v, d, err := n.views.Resolve(r.View)
	if err != nil {
		return control.Survey{}, err
	}
	if r.Unsettle && (r.Settle || r.Seats != nil) {
		return control.Survey{}, fmt.Errorf("plan of %v %w: unsettle it first, and then look or settle again", v, meta.ErrInvalid)
	}
	p := control.Survey{ViewName: control.NameOf(v.Short(d.Default), v.String()), Ranks: v.Ranks, Located: true, Warning: cmp.Or(unreadable(d, d.Changed(ctx)), n.views.Memory.Warning(v, d.Version))}
	if d.Version.Source.Remote {
		p.LocalBlocks = n.hdfs.Stats().LocalBlocks
	}
	seats, err := n.seat(ctx, v, d, r, &p)
	if err != nil {
		return p, err
	}
	holder := ""
	if !d.Version.Source.Remote {
		holder = d.Version.Source.Host(n.host)
	}
	if err := survey.Count(ctx, v, d.Version, holder, seats, &p); err != nil {
		return p, fmt.Errorf("plan of %v: %w", v, err)
	}
	if r.Weights != nil {
		p.Program, err = survey.Program(d.Version, seats, *r.Weights)
	}
	return p, err
}

// seat finds out where the ranks of a view are, having it settled or not as r
// asks, and notes in p how certain that is.
func (n *planning) seat(ctx context.Context, v meta.View, d *catalog.Dataset, r control.PlanRequest, p *control.Survey) ([]plan.Seat, error) {
	asked, err := nameSeats(n.state, r.Seats, v.Ranks)
	if err != nil {
		return nil, err
	}
	p.State, p.Reason = control.PlanOpen, n.fixedBecause(v, d)
	if p.Reason != "" {
		p.State = control.PlanFixed
		if r.Settle || r.Unsettle {
			option := "--settle"
			if r.Unsettle {
				option = "--unsettle"
			}
			return nil, meta.Worded(meta.ErrInvalid, "plan of %v: there is nothing to settle: %s; leave %s out", v, p.Reason, option)
		}
	}
	if r.Unsettle {
		_, err = n.commands.Do(ctx, &state.Unsettle{View: v.String()})
		n.drop(v.Dataset) // which looks its views up again
	}
	if r.Settle && err == nil {
		err = n.settle(ctx, v, d, asked)
	}
	if err != nil {
		return nil, err
	}
	settled, ok := n.state.SettledPlan(v.String())
	if ok = ok && settled.Generation == d.Generation; ok {
		at := time.Unix(0, settled.Settled).UTC()
		p.Settled = &at
	}
	switch {
	case asked.seats != nil && !r.Settle:
		return asked.seats, nil
	case ok:
		p.State = control.PlanSettled
		return n.views.Ranks.Seats(settled.Nodes), nil
	}
	return n.views.Ranks.Seats(n.views.Ranks.WouldBe(v)), nil
}

// fixedBecause is why the plan does not depend on where ranks are, empty if it does.
func (n *planning) fixedBecause(v meta.View, d *catalog.Dataset) string {
	switch {
	case v.Assign == meta.AssignStrict:
		return "with assign=strict each rank has its share of every step, wherever it is"
	case !d.Version.Source.Remote:
		return "all of the source lies on " + d.Version.Source.Host(n.host)
	}
	return ""
}

// settle settles the plan of a view for ranks that are where a request has them, or else
// where the cluster would.
func (n *planning) settle(ctx context.Context, v meta.View, d *catalog.Dataset, asked namedSeats) error {
	if asked.unknown != nil {
		return fmt.Errorf("settle plan of %v: %w", v, asked.unknown)
	}
	nodes := asked.nodes
	if nodes == nil {
		nodes = n.views.Ranks.WouldBe(v)
	}
	r, err := n.commands.Do(ctx, &state.Settle{View: v.String(), Generation: d.Generation, Nodes: nodes})
	if err != nil {
		return err
	}
	if asked.nodes != nil && !slices.Equal(r.Plan().Nodes, nodes) {
		return fmt.Errorf("settle plan of %v: one for other nodes %w", v, meta.ErrExist)
	}
	n.drop(v.Dataset)
	return nil
}

// NamedSeats is where a request has ranks. Hosts need not be of the cluster, unless
// that is to be settled.
type namedSeats struct {
	seats   []plan.Seat
	nodes   state.Runs
	unknown error // of a host that no node is on
}

// nameSeats takes seats for as many ranks as there are; those left over stay empty,
// as mpirun leaves them.
func nameSeats(m nodes, all []control.Seat, ranks uint64) (a namedSeats, err error) {
	known := make(map[string]plan.Seat)
	ids := make(map[string]string)
	left := ranks
	for _, s := range all {
		if left == 0 {
			break
		}
		if s.Host == "" || s.Ranks == 0 {
			return a, fmt.Errorf("%d ranks on host %q %w", s.Ranks, s.Host, meta.ErrInvalid)
		}
		if _, ok := known[s.Host]; !ok {
			if known[s.Host], ids[s.Host], err = hostOf(m, s.Host); errors.Is(err, meta.ErrInvalid) {
				return a, err
			} else if err != nil && a.unknown == nil {
				a.unknown = err
			}
		}
		here := min(s.Ranks, left)
		left -= here
		a.seats = append(a.seats, plan.Seat{Host: known[s.Host].Host, Ranks: here})
		a.nodes = append(a.nodes, state.Run{Node: ids[s.Host], Count: here})
	}
	if all != nil && left > 0 {
		return a, fmt.Errorf("list of hosts %w: these are hosts for %d ranks, the view has %d; give each host its slots=N", meta.ErrInvalid, ranks-left, ranks)
	}
	a.nodes = joined(a.nodes)
	return a, nil
}

// joined merges neighbouring runs on the same node.
func joined(runs state.Runs) (r state.Runs) {
	for _, run := range runs {
		if last := len(r) - 1; last >= 0 && r[last].Node == run.Node {
			r[last].Count += run.Count
			continue
		}
		r = append(r, run)
	}
	return r
}

// hostOf is the host with this name, or that of the node with this id, and the node.
// A host without a node keeps the name that was given.
func hostOf(m nodes, name string) (s plan.Seat, id string, err error) {
	if id, err = findNode(m, name); err != nil {
		return plan.Seat{Host: name}, "", err
	}
	n, _ := m.Node(id)
	return plan.Seat{Host: n.Host}, id, nil
}
