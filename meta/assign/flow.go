package assign

import "math"

// augment makes the flow a maximum, by Dinic's algorithm: as long as nodes
// with room can be reached, it sends what it can along shortest paths.
//
// A path goes from a group that has positions left to a target, back along an
// arc that carries flow to a group which could be read elsewhere, and so on.
// Since a node that is full can be left only that way, each search looks at
// each arc at most twice.
func (g *graph) augment() {
	for g.waiting > 0 && g.reach() {
		copy(g.groupNext, g.first)
		copy(g.targetNext, g.into.start)
		copy(g.rackNext, g.racks.start)
		for x, n := range g.left {
			if n > 0 && g.groupLevel[x] == 0 {
				sent := g.pushGroup(int32(x), n)
				g.left[x] -= sent
				g.waiting -= int64(sent)
			}
		}
	}
}

// open reports whether flow may be added to arc a; see raise.
func (g *graph) open(x, t int32) bool {
	if t >= g.nodes {
		return g.groupHigh[x]
	}
	return g.groupHigh[x] || !g.targetHigh[t]
}

// reach finds the levels of all that can be reached, up to that of the first
// nodes with room, and reports whether there are any.
func (g *graph) reach() bool {
	fill(g.groupLevel, -1)
	fill(g.targetLevel, -1)
	g.queue, g.found = g.queue[:0], math.MaxInt32
	for x, n := range g.left {
		if n > 0 {
			g.seeGroup(int32(x), 0)
		}
	}
	for i := 0; i < len(g.queue); i++ {
		if v := g.queue[i]; v >= 0 {
			g.leaveGroup(v)
		} else if g.targetLevel[^v] >= g.found {
			break
		} else {
			g.leaveTarget(^v)
		}
	}
	return g.found != math.MaxInt32
}

func (g *graph) seeGroup(x, level int32) {
	if g.groupLevel[x] < 0 {
		g.groupLevel[x] = level
		g.queue = append(g.queue, x)
	}
}

func (g *graph) seeTarget(t, level int32) {
	if g.targetLevel[t] >= 0 {
		return
	}
	g.targetLevel[t] = level
	g.queue = append(g.queue, ^t)
	if t < g.nodes && g.room[t] > 0 {
		g.found = min(g.found, level)
	}
}

func (g *graph) leaveGroup(x int32) {
	level := g.groupLevel[x] + 1
	for _, t := range g.to[g.first[x]:g.first[x+1]] {
		if g.targetLevel[t] < 0 && g.open(x, t) {
			g.seeTarget(t, level)
		}
	}
}

func (g *graph) leaveTarget(t int32) {
	level := g.targetLevel[t] + 1
	for _, a := range g.into.row(t) {
		if g.flow[a] > 0 {
			g.seeGroup(g.from[a], level)
		}
	}
	if t >= g.nodes {
		for _, node := range g.racks.row(t - g.nodes) {
			if !g.targetHigh[node] {
				g.seeTarget(node, level)
			}
		}
	} else if g.viaRack[t] > 0 {
		g.seeTarget(g.nodes+g.rackOf[t], level)
	}
}

// pushGroup sends up to want positions of x on, and returns how many went.
func (g *graph) pushGroup(x, want int32) int32 {
	sent, level := int32(0), g.groupLevel[x]+1
	for ; g.groupNext[x] < g.first[x+1]; g.groupNext[x]++ {
		a := g.groupNext[x]
		t := g.to[a]
		if g.targetLevel[t] != level || !g.open(x, t) {
			continue
		}
		n := g.pushTarget(t, want-sent)
		g.flow[a] += n
		if sent += n; sent == want {
			break
		}
	}
	return sent
}

// pushTarget finds a place for up to want positions that arrive at t: room,
// or another target for positions that t reads.
func (g *graph) pushTarget(t, want int32) int32 {
	sent, level := int32(0), g.targetLevel[t]+1
	if t < g.nodes {
		sent = min(want, g.room[t])
		g.room[t] -= sent
	} else {
		sent = g.pushRack(t, want)
	}
	if sent == want || level > g.found {
		return sent
	}
	for end := g.into.start[t+1]; g.targetNext[t] < end; g.targetNext[t]++ {
		a := g.into.list[g.targetNext[t]]
		if g.flow[a] == 0 || g.groupLevel[g.from[a]] != level {
			continue
		}
		n := g.pushGroup(g.from[a], min(want-sent, g.flow[a]))
		g.flow[a] -= n
		if sent += n; sent == want {
			return sent
		}
	}
	return sent + g.pushBack(t, want-sent)
}

// pushRack sends positions from a rack on to its nodes.
func (g *graph) pushRack(t, want int32) int32 {
	sent, level, rack := int32(0), g.targetLevel[t]+1, t-g.nodes
	for end := g.racks.start[rack+1]; g.rackNext[rack] < end; g.rackNext[rack]++ {
		node := g.racks.list[g.rackNext[rack]]
		if g.targetLevel[node] != level || g.targetHigh[node] {
			continue
		}
		n := g.pushTarget(node, want-sent)
		g.viaRack[node] += n
		if sent += n; sent == want {
			break
		}
	}
	return sent
}

// pushBack gives positions that node t has via its rack back to the rack.
func (g *graph) pushBack(t, want int32) int32 {
	if t >= g.nodes || g.viaRack[t] == 0 || g.targetLevel[g.nodes+g.rackOf[t]] != g.targetLevel[t]+1 {
		return 0
	}
	n := g.pushTarget(g.nodes+g.rackOf[t], min(want, g.viaRack[t]))
	g.viaRack[t] -= n
	return n
}

// raise begins the second phase of the flow of least cost, when augment has
// sent a maximum to hosts and positions are left.
//
// It is the primal-dual method, in which nodes have prices and a group sends
// only to targets where cost and price are least together. At first all
// prices are 0, and groups send to hosts: cost 0. What the positions that are
// left can still reach is full, so its prices go up by 1, and the groups in it
// may now pay 1: to a host at the new price, or to a rack's node at the old
// one. All other groups still pay 0, to a host at the old price. When a
// maximum has been sent that way, a second rise lets what is left pay 2. No
// node that has room was ever reached, so they all still ask 0, and are open
// at the cost of 2 to any of it: the third phase needs no search. Since all
// flow goes where cost and price are least, and nodes with room ask nothing,
// the cost is the least possible.
func (g *graph) raise() {
	for x, level := range g.groupLevel {
		g.groupHigh[x] = level >= 0
	}
	for t := range g.nodes {
		g.targetHigh[t] = g.targetLevel[t] >= 0
	}
}
