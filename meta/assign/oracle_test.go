package assign_test

import "rankfs/meta/assign"

// A network is a flow problem written down in full, an arc for each pair, and
// solved one unit at a time along shortest or cheapest paths: slow, short and
// independent of the package.
type network struct {
	capacity, cost [][]int
}

func newNetwork(vertices int) network {
	n := network{make([][]int, vertices), make([][]int, vertices)}
	for v := range vertices {
		n.capacity[v], n.cost[v] = make([]int, vertices), make([]int, vertices)
	}
	return n
}

func (n network) arc(from, to, capacity, cost int) {
	n.capacity[from][to] += capacity
	n.cost[from][to], n.cost[to][from] = cost, -cost
}

// flow sends the most from vertex 0 to vertex 1, at the least cost: it
// augments along cheapest paths, found as Bellman and Ford did.
func (n network) flow() (sent, cost int) {
	const far = 1 << 30
	for {
		distance, before := make([]int, len(n.cost)), make([]int, len(n.cost))
		for v := range distance {
			distance[v] = far
		}
		distance[0] = 0
		for changed := true; changed; {
			changed = false
			for v := range n.cost {
				for u, room := range n.capacity[v] {
					if room > 0 && distance[v] < far && distance[v]+n.cost[v][u] < distance[u] {
						distance[u], before[u], changed = distance[v]+n.cost[v][u], v, true
					}
				}
			}
		}
		if distance[1] == far {
			return sent, cost
		}
		for v := 1; v != 0; v = before[v] {
			n.capacity[before[v]][v]--
			n.capacity[v][before[v]]++
		}
		sent, cost = sent+1, cost+distance[1]
	}
}

// mostLocal is how many positions can be read where they are held.
func mostLocal(c caseOf) int {
	n := newNetwork(2 + len(c.of) + c.cluster.Nodes)
	for rank, node := range c.cluster.NodeOf {
		n.capacity[2+len(c.of)+int(node)][1] += len(c.strict.Of(rank))
	}
	for position := range c.of {
		n.arc(0, 2+position, 1, 0)
		for node := range c.cluster.Nodes {
			if c.held(position, node) {
				n.arc(2+position, 2+len(c.of)+node, 1, 0)
			}
		}
	}
	sent, _ := n.flow()
	return sent
}

// leastCost is the least sum of 0 for each position read on a host, 1 in the
// rack of one, 2 elsewhere.
func leastCost(c caseOf) int {
	n := newNetwork(2 + len(c.of) + c.cluster.Nodes)
	for rank, node := range c.cluster.NodeOf {
		n.capacity[2+len(c.of)+int(node)][1] += len(c.strict.Of(rank))
	}
	for position := range c.of {
		n.arc(0, 2+position, 1, 0)
		for node := range c.cluster.Nodes {
			n.arc(2+position, 2+len(c.of)+node, 1, c.distance(position, node))
		}
	}
	_, cost := n.flow()
	return cost
}

// canServe reports whether the holders of what d reads from elsewhere can
// serve it, if no node serves more than that.
func canServe(c caseOf, d assign.Division, most int) bool {
	n := newNetwork(2 + len(c.of) + c.cluster.Nodes)
	for node := range c.cluster.Nodes {
		n.arc(2+len(c.of)+node, 1, most, 0)
	}
	remote := 0
	for rank, reader := range c.cluster.NodeOf {
		for _, position := range d.Of(rank) {
			distance := c.distance(int(position), int(reader))
			if distance == 0 || len(c.holders[c.of[position]]) == 0 {
				continue
			}
			remote++
			n.arc(0, 2+int(position), 1, 0)
			for node := range c.cluster.Nodes {
				inRack := distance == 2 || c.cluster.RackOf[node] == c.cluster.RackOf[reader]
				if c.held(int(position), node) && inRack {
					n.arc(2+int(position), 2+len(c.of)+node, 1, 0)
				}
			}
		}
	}
	sent, _ := n.flow()
	return sent == remote
}
