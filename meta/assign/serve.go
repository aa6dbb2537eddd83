package assign

import (
	"fmt"

	"rankfs/meta"
)

func (p *Planner) checkServe(serve []int32) error {
	if serve != nil && len(serve) != len(p.inner) {
		return fmt.Errorf("serving capacities of %d nodes %w: there are %d", len(serve), meta.ErrInvalid, len(p.inner))
	}
	for node, n := range serve {
		if n < 0 {
			return fmt.Errorf("serving capacity %d of node %d %w: use 0 or more", n, node, meta.ErrInvalid)
		}
	}
	return nil
}

// serve says from which node each position comes. That is a second flow, over
// the positions that are not local and all nodes, with ranks or without.
func (w *work) serve(plan *Plan, of, capacity []int32) error {
	plan.From = make([]int32, len(of))
	var remote []int32 // positions
	for position, node := range w.at {
		if plan.From[position] = -1; w.g.arc(w.group[position], node) >= 0 {
			plan.From[position] = w.p.outer[node]
		} else if len(w.p.sets.at(of[position])) > 0 {
			remote = append(remote, int32(position))
		}
	}
	if len(remote) == 0 {
		return nil
	}
	g, err := w.servers(remote, of, capacity)
	if err != nil {
		return err
	}
	plan.Over = g.overload()
	for i, position := range remote {
		a := g.first[i]
		for g.flow[a] == 0 {
			a++
		}
		plan.From[position] = g.to[a]
	}
	return nil
}

// servers is the graph of the nodes that may serve each of some positions.
func (w *work) servers(remote, of, capacity []int32) (*graph, error) {
	p, arcs := w.p, 0
	for _, position := range remote {
		arcs += len(p.sets.at(of[position]))
	}
	g := &graph{}
	if err := g.reset(len(remote), arcs, len(p.inner), table{}); err != nil {
		return nil, err
	}
	copy(g.room, capacity)
	var near, nodes []int32
	for _, position := range remote {
		nodes = distinct(append(nodes[:0], p.sets.at(of[position])...))
		near = near[:0]
		rack := p.rackOf[w.at[position]]
		for _, node := range nodes {
			if rack >= 0 && p.innerRack[node] == rack {
				near = append(near, node)
			}
		}
		if len(near) == 0 {
			near = append(near, nodes...)
		}
		g.addGroup(1, near)
	}
	g.ready()
	return g, nil
}

// overload sends everything, giving all nodes as much more room as it takes.
//
// When no more can be sent, what the groups that are left can reach is full,
// and has to take that much more in any case: an even share of it, rounded up,
// is a lower bound of what is missing. So no step goes too far.
func (g *graph) overload() (over int32) {
	g.greedy()
	for g.augment(); g.waiting > 0; g.augment() {
		reached := int64(0)
		for _, level := range g.targetLevel {
			if level >= 0 {
				reached++
			}
		}
		more := int32((g.waiting + reached - 1) / reached)
		for node := range g.room {
			g.room[node] += more
		}
		over += more
	}
	return over
}
