package group

import "time"

// apart is how far apart clocks are of which one is wrong: more than anything
// leaves that sets them, and less than matters to a certificate or a token.
const apart = 10 * time.Minute

// compare says which clocks are far from this one's, and whether it is this one
// that is wrong: most voters say so, or have certificates that are not of now. Tokens
// expire by the leader's clock; and a leader whose clock is off by more than a
// certificate lasts refuses every certificate, so that followers seem dead although
// they follow it on older connections.
func (g *Group) compare() (wrong bool) {
	var votes, ahead, behind int
	servers := g.servers()
	for _, id := range g.ids() {
		off := g.seen.ahead(id)
		g.notice(id, off)
		if !isVoter(servers[id]) {
			continue
		}
		votes++
		switch {
		case off > apart:
			ahead++
		case off < -apart:
			behind++
		}
	}
	return 2*ahead > votes || 2*behind > votes
}

// notice says once that the clock of a node is not right, or not that of this one.
func (g *Group) notice(id string, ahead time.Duration) {
	const what = "clocks of two nodes are apart: set them; certificates and tokens expire by them"
	key := what + id
	if ahead.Abs() <= apart {
		delete(g.said, key)
	} else if g.said[key] == "" {
		g.said[key] = what
		g.config.Log.Warn(what, "node", id, "ahead of this one", ahead.Round(time.Second))
	}
}

// handOver transfers the lead to another node, as its clock may be right.
func (g *Group) handOver() {
	err := g.raft.LeadershipTransfer().Error() // tried again at the next tick
	if g.told("most voters' clocks say that this node's is wrong, and no other leads", g.config.Self.ID, err) {
		g.config.Log.Warn("most voters' clocks say that this node's is wrong: another leads now")
	}
}
