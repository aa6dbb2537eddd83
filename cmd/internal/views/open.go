package views

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankfs/cache"
	"rankfs/cmd/internal/catalog"
	"rankfs/fs"
)

// Offsets implements fs.RecordTables.
func (v *View) Offsets(ctx context.Context, rank, step uint64) (fs.Offsets, error) {
	if err := v.settle(ctx, nil, rank); err != nil {
		return nil, err
	}
	return v.now().Offsets(ctx, rank, step)
}

// Checksum implements fs.Unlisted.
func (v *View) Checksum(ctx context.Context, rank, step uint64) (string, error) {
	slab, err := v.Open(ctx, 0, rank, step)
	if err != nil {
		return "", err
	}
	defer slab.Release()
	sum, err := slab.(*cache.Slab).Sum(ctx)
	return fmt.Sprintf("xxh64:%016x", sum), err
}

// Open implements fs.Batches. It settles the view, and has the cache find the slab or make it.
// What it waits for is accounted for.
func (v *View) Open(ctx context.Context, thread int32, rank, step uint64) (_ fs.Slab, err error) {
	account := v.stalls.Open(v.job, rank)
	account.Of, account.Thread = v.dataset.Created.UnixNano(), thread
	size := int64(0)
	defer func() { account.Done(size, err) }()
	if err := v.settle(ctx, &account, rank); err != nil {
		return nil, err
	}
	a := v.now()
	source := &a.Version.Source
	var slab *cache.Slab
	for begun, again := time.Now(), true; again; again = err != nil && source.Again(ctx, &account, begun, &err) {
		if err = source.Reach(ctx, &account); err == nil {
			slab, err = v.cache.Open(ctx, &account, a.series, rank, step, a.Batches.keyFor(&account, rank, step))
		}
	}
	if err != nil {
		err = fmt.Errorf("dataset %s: %w", v.asked.Dataset, catalog.Reindex(err, v.asked.Dataset, source))
		return nil, v.withRoomFor(err)
	}
	size = slab.Size()
	return slab, nil
}

// withRoomFor adds to the error of an open that was refused for want of memory what would be
// enough for all ranks that the node has of the view.
func (v *View) withRoomFor(err error) error {
	var c *cache.Shortage
	if !errors.As(err, &c) {
		return err
	}
	return fmt.Errorf("%w; %s", err, v.memory.roomFor(c, 0))
}
