package group

import (
	"context"
	"slices"
	"time"
)

// clocks are the clocks of the nodes, beside the leader's. Tokens expire by the leader's
// clock; and a leader whose clock is off by more than a certificate lasts refuses every
// certificate, so that followers seem dead although they follow it on older connections.
// So the leader's clock is one that most voters agree with.
type clocks struct {
	config   *Config
	seen     *liveness
	replica  *replica
	warnings *warnings
}

// apart is the difference of clocks of which one is wrong: more than anything
// leaves that sets them, and less than matters to a certificate or a token.
const apart = 10 * time.Minute

// compare says which clocks are far from this one's, and whether it is this one
// that is wrong: most voters say so, or have certificates that are not of now.
func (c *clocks) compare() (wrong bool) {
	var votes, ahead, behind int
	voters := c.replica.voters()
	for _, id := range c.config.ids() {
		off := c.seen.ahead(id)
		c.notice(id, off)
		if !slices.Contains(voters, id) {
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
func (c *clocks) notice(id string, ahead time.Duration) {
	const what = "clocks of two nodes are apart: set them; certificates and tokens expire by them"
	if ahead.Abs() <= apart {
		c.warnings.over(what + id)
	} else if c.warnings.isNew(what+id, what) {
		c.config.Log.Warn(what, "node", id, "ahead of this one", ahead.Round(time.Second))
	}
}

// handOver transfers the lead to another node, as its clock may be right.
func (c *clocks) handOver(ctx context.Context) {
	err := c.replica.giveAway(ctx) // tried again at the next tick
	if c.warnings.told("most voters' clocks say that this node's is wrong, and no other leads", c.config.Self.ID, err) {
		c.config.Log.Warn("most voters' clocks say that this node's is wrong: another leads now")
	}
}
