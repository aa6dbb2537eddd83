package group

import (
	"context"
	"errors"
	"sync"
	"time"

	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// health says which nodes are up. The leader asks all of them in each round, and has the
// cluster note which went up or down; the answers are in liveness for the rest of the round.
type health struct {
	config   *Config
	seen     *liveness
	prober   *prober
	executor *executor
}

// look asks all nodes whether they are there.
func (h *health) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, h.config.times.look)
	defer cancel()
	slots := make(chan struct{}, maxLooks)
	var all sync.WaitGroup
	for _, id := range h.config.ids() {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			h.lookAt(ctx, id)
		})
	}
	all.Wait()
	h.seen.looked(time.Now())
}

func (h *health) lookAt(ctx context.Context, id string) {
	p, err := h.prober.at(ctx, id)
	var u *trust.Untimely
	switch {
	case err == nil:
		h.seen.saw(id, p, h.config.Now())
	case errors.As(err, &u):
		h.seen.doubt(id, u.Off)
	default:
		h.seen.doubt(id, 0)
	}
}

// report enters which nodes have come up and which have gone down.
func (h *health) report(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, h.config.times.patience)
	defer cancel()
	for _, n := range h.config.Machine.Nodes() {
		up, asked := h.seen.live(n.ID), h.seen.asked(n.ID)
		if !asked {
			continue // it was admitted, or this node learned of it, after the others were asked
		}
		if up && !n.Up && !h.seen.answered(n.ID) {
			continue // it was down for the leader before, and has said nothing since
		}
		if up != n.Up {
			if _, err := h.executor.apply(ctx, h.config.itself(), &state.Health{ID: n.ID, Life: n.Life, Up: up}); err != nil {
				return
			}
			h.config.Log.Info("node changed", "node", n.ID, "host", n.Host, "up", up)
		}
	}
}
