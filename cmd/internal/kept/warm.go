package kept

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"rankfs/cache"
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
)

// A warming brings the batches of a share into the cache.
type warming struct {
	*warmUp
	slabs *slabs
}

// Warm makes ready what of a view this node is to have, or only says how much of
// it is.
func (n *slabs) Warm(ctx context.Context, r control.WarmRequest, progress func(control.Progress)) (control.Warm, error) {
	v, err := n.Views.Open(r.View)
	if err != nil {
		return control.Warm{}, err
	}
	if err := v.Of().Changed(ctx); err != nil { // what is in the cache of it, no open gets
		return control.Warm{}, fmt.Errorf("warm up %s: %w", r.View, err)
	}
	s, err := shareOf(v, r.Rank)
	if err != nil {
		return control.Warm{}, err
	}
	c := control.Warm{ViewName: control.NameOf(v.Called()), Kind: s.kind, Open: n.isOpen(v, s), Elsewhere: s.elsewhere(v)}
	if err := s.look(ctx, n.cache, &c); err != nil || r.Check || c.Ready == c.All {
		return c, err
	}
	w := &warming{&warmUp{view: v, name: r.View, called: c.ViewName, share: s, of: c.All, ended: make(chan struct{})}, n}
	if r.Background {
		ctx = n.ctx
	}
	ctx, w.stop = context.WithCancelCause(ctx)
	if err := n.warmUps.begin(w.warmUp); err != nil {
		w.stop(nil)
		return c, err
	}
	if r.Background {
		c.Begun = true
		n.tasks.Go(func() { w.inBackground(ctx, c) })
		return c, nil
	}
	return w.run(ctx, c, progress)
}

// isOpen reports whether ranks may start on other nodes than expected, and then read
// other batches.
func (n *slabs) isOpen(v *views.View, s share) bool {
	return !v.Settled() && s.kind == control.Batches && n.Owners.Count() > 1
}

// inBackground is a warm-up for which no request waits.
func (w *warming) inBackground(ctx context.Context, c control.Warm) {
	log, start := w.slabs.Log, time.Now()
	c, err := w.run(ctx, c, func(control.Progress) {})
	switch {
	case w.slabs.ctx.Err() != nil:
	case err != nil:
		log.Warn("warm-up given up", "view", c.View, "ready", c.Ready, "of", c.All, "cause", err)
	case c.NoRoom != "":
		log.Warn("warm-up ended: the rest does not fit", "view", c.View, "ready", c.Ready, "of", c.All, "cause", c.NoRoom)
	default:
		log.Info("warmed up", "view", c.View, "ready", c.Ready, "of", c.All, "took", time.Since(start))
	}
}

// run makes the batches ready, and says what came of it.
func (w *warming) run(ctx context.Context, c control.Warm, progress catalog.Reporter) (control.Warm, error) {
	defer w.slabs.warmUps.end(w.warmUp)
	defer w.stop(nil)
	var err error
	source := &w.view.Of().Version.Source
	for begun, again := time.Now(), true; again; again = source.Again(ctx, nil, begun, &err) {
		if err = source.Reach(ctx, nil); err == nil {
			err = w.work(ctx, progress)
		}
	}
	if errors.Is(err, meta.ErrNoSpace) {
		if w.view.Batches().Chunks == nil {
			c.TooLarge = w.slabs.tooLarge(w.view)
		}
		c.NoRoom, err = cmp.Or(c.TooLarge, strings.ReplaceAll(meta.Plain(err), "\n", "; ")), nil
	}
	// What was ready may have made way since: only looking tells.
	lerr := w.share.look(context.WithoutCancel(ctx), w.slabs.cache, &c)
	if err = errors.Join(err, lerr); err != nil {
		return c, fmt.Errorf("warm up %s: %w", w.name, err)
	}
	return c, nil
}

// work has several make batches ready until all are, or one cannot be.
func (w *warming) work(ctx context.Context, progress catalog.Reporter) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var workers sync.WaitGroup
	for range w.slabs.cache.Workers() {
		workers.Go(func() {
			if err := w.makeReady(ctx); err != nil {
				cancel(err)
			}
		})
	}
	ended := make(chan struct{})
	go func() { workers.Wait(); cancel(nil); close(ended) }()
	w.report(ctx, progress)
	<-ended
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) || w.done.Load() < w.of {
		return err
	}
	return nil
}

// makeReady fills one batch or chunk after the other that the cache does not have.
func (w *warming) makeReady(ctx context.Context) error {
	for i := w.next.Add(1) - 1; i < w.of && ctx.Err() == nil; i = w.next.Add(1) - 1 {
		rank, step := w.share.at(i)
		if _, ok := w.slabs.cache.Contains(w.share.series.Key(rank, step)); !ok {
			if err := w.prepare(ctx, rank, step); err != nil {
				return err
			}
		}
		w.done.Add(1)
	}
	return nil
}

// prepare tries for a while: memory that was given up is free a moment later.
func (w *warming) prepare(ctx context.Context, rank, step uint64) error {
	const tries, pause = 20, 50 * time.Millisecond
	for n := 1; ; n++ {
		err := w.slabs.cache.Prepare(ctx, w.share.series, rank, step)
		if !errors.Is(err, meta.ErrNoSpace) || n == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// report says how far it is, until ctx ends.
func (w *warming) report(ctx context.Context, progress catalog.Reporter) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		done := float64(w.done.Load()) / float64(max(1, w.of))
		progress(control.Progress{Doing: "warming", Bytes: int64(done * float64(w.share.bytes)), Total: w.share.bytes})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// reportEvery is often enough for a bar.
const reportEvery = 100 * time.Millisecond

// look counts the batches or chunks that are ready, by the fastest tier that has them.
func (s share) look(ctx context.Context, in *cache.Cache, w *control.Warm) error {
	w.All, w.Ready, w.RAM, w.Packed, w.NVMe = s.count(), 0, control.Made{}, control.Made{}, control.Made{}
	tiers := map[string]*control.Made{control.TierRAM: &w.RAM, control.TierPacked: &w.Packed, control.TierNVMe: &w.NVMe}
	for i := range w.All {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rank, step := s.at(i)
		if tier, ok := in.Contains(s.series.Key(rank, step)); ok {
			w.Ready++
			tiers[tier].Batches++
		}
	}
	return nil
}
