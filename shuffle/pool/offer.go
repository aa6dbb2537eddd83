package pool

import (
	"context"
	"time"

	"rankfs/meta/state"
)

// How often it is seen what this node has for the pool, and how long it takes at most to say
// so: a mount waits for that, as a node whose pool the cluster does not know is given no copies.
const (
	offerEvery = time.Second
	offerTime  = 2 * time.Second
)

// KeepOffering says what this node has for the pool, whenever that changes, until ctx is done.
// One that has no memory for it says so, as an earlier daemon may have had some.
func (p *Pool) KeepOffering(ctx context.Context) {
	t := time.NewTicker(offerEvery)
	defer t.Stop()
	for {
		p.Offer(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Offer says it once, if the cluster knows another thing.
func (p *Pool) Offer(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, offerTime)
	defer cancel()
	if err := p.offer(ctx); err != nil && ctx.Err() == nil {
		p.config.Log.Debug("the cluster does not know what this node has for the shuffle pool", "cause", err)
	}
}

func (p *Pool) offer(ctx context.Context) error {
	is, ok := p.config.State.Node(p.config.Cluster.Self())
	if !ok || p.config.State.Version() < state.Signed {
		return nil
	}
	bytes, full := p.Room(is.PoolFull)
	if bytes == is.Pool && full == is.PoolFull {
		return nil
	}
	_, err := p.config.Cluster.Do(ctx, &state.OfferPool{ID: is.ID, Bytes: bytes, Full: full})
	return err
}
