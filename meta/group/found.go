package group

import (
	"context"

	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// found makes this node the first of a new cluster.
func (c *commands) found(ctx context.Context) error {
	request, err := c.config.Identity.Request()
	if err != nil {
		return err
	}
	r, err := trust.ParseRequest(request)
	if err != nil {
		return err
	}
	first := c.config.Self
	first.Key = trust.KeyID(r.Key)
	a := c.config.Authority
	_, err = c.do(ctx, c.config.itself(), &state.Found{Cluster: state.Cluster{ID: a.Cluster(), CA: a.Fingerprint().String()}})
	if err == nil {
		admit := &state.Admit{Node: first}
		if c.config.Machine.Version() >= state.Signed {
			admit.Speaks = c.config.Machine.Speaks()
		}
		_, err = c.do(ctx, c.config.itself(), admit)
	}
	return err
}
