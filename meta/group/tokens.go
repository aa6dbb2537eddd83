package group

import (
	"context"
	"encoding/hex"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// MakeToken makes a token that the cluster takes so many times, until it expires:
// by the clock of the leader, that is, whatever this node's says. It lets nodes in
// with a role.
func (g *Group) MakeToken(ctx context.Context, life time.Duration, uses int, role state.Role) (trust.Token, error) {
	var p pulse
	if err := g.AskLeader(ctx, callNow, struct{}{}, &p); err != nil {
		return trust.Token{}, err
	}
	if err := g.follow(ctx, p.Applied); err != nil {
		return trust.Token{}, err
	}
	pin := g.config.Authority.Fingerprint()
	t, c := trust.NewToken(pin), &state.Token{Expires: p.Clock + int64(life), Uses: uses, Role: role}
	if version := g.config.Machine.Version(); version < state.Signed {
		if role != state.Operator {
			return trust.Token{}, meta.Worded(meta.ErrInvalid, "token for a %s cannot be made before all nodes are of this release, and there are roles: "+
				"upgrade the others, or let a node in that may do everything: --role %s", role, state.Operator)
		}
		t, c.Role = trust.NewPlainToken(pin), ""
	}
	hash := t.Hash()
	c.Hash = hex.EncodeToString(hash[:])
	_, err := g.Do(ctx, c)
	return t, err
}

// DropToken ends a token before its time.
func (g *Group) DropToken(ctx context.Context, hash string) error {
	_, err := g.Do(ctx, &state.DropToken{Hash: hash})
	return err
}
