package group

import (
	"context"
	"time"
)

// duties are the work of a leader beside Raft, in rounds: one goroutine, which looks where
// the nodes are first, and then has each part act on what was seen.
type duties struct {
	config     *Config
	seen       *liveness
	replica    *replica
	health     *health
	clocks     *clocks
	upgrade    *upgrade
	membership *membership
	keys       *keys
}

// run makes rounds whenever this node leads, until ctx is done.
func (d *duties) run(ctx context.Context) {
	tick := time.NewTicker(d.config.times.tick)
	defer tick.Stop()
	led := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		leads := d.replica.Leads()
		if leads && !led {
			d.seen.begin(d.config.ids(), time.Now())
		}
		if led = leads; leads {
			d.round(ctx)
		}
	}
}

func (d *duties) round(ctx context.Context) {
	d.health.look(ctx)
	if d.clocks.compare() {
		d.clocks.handOver(ctx)
		return // with a wrong clock it must not decide which nodes are dead
	}
	d.health.report(ctx)
	d.upgrade.goOver(ctx)
	d.membership.reconcile(ctx)
	d.keys.shareKey(ctx)
}
