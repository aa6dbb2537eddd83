package group

import (
	"context"
	"encoding/hex"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// tokens let nodes in. The cluster keeps the hash of each; the operator that asked for
// it gets the token itself, which is written nowhere.
type tokens struct {
	config   *Config
	progress *progress
	commands *commands
}

// MakeToken makes a token that the cluster takes so many times, until it expires:
// by the clock of the leader, that is, whatever this node's says. It lets nodes in
// with a role.
func (t *tokens) MakeToken(ctx context.Context, life time.Duration, uses int, role state.Role) (trust.Token, error) {
	now, err := t.progress.catchUp(ctx)
	if err != nil {
		return trust.Token{}, err
	}
	authority := t.config.Authority.Fingerprint()
	token, c := trust.NewToken(authority), &state.Token{Expires: now.Clock + int64(life), Uses: uses, Role: role}
	if version := t.config.Machine.Version(); version < state.Signed {
		if role != state.Operator {
			return trust.Token{}, meta.Worded(meta.ErrInvalid, "token for a %s cannot be made before all nodes are of this release, and there are roles: "+
				"upgrade the others, or let a node in that may do everything: --role %s", role, state.Operator)
		}
		token, c.Role = trust.NewPlainToken(authority), ""
	}
	hash := token.Hash()
	c.Hash = hex.EncodeToString(hash[:])
	_, err = t.commands.Do(ctx, c)
	return token, err
}

// DropToken ends a token before its time.
func (t *tokens) DropToken(ctx context.Context, hash string) error {
	_, err := t.commands.Do(ctx, &state.DropToken{Hash: hash})
	return err
}
