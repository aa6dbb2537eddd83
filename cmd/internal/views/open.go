package views

import (
	"context"
	"fmt"

	"rankfs/cache"
	"rankfs/cmd/internal/catalog"
	"rankfs/fs"
	"rankfs/meta/stall"
)

// Offsets implements fs.View.
func (v *View) Offsets(ctx context.Context, rank, step uint64) (fs.Offsets, error) {
	if err := v.settle(ctx, nil, rank); err != nil {
		return nil, err
	}
	return v.now().Offsets(ctx, rank, step)
}

// Open implements fs.View.
func (v *View) Open(ctx context.Context, rank, step uint64) (fs.Slab, error) {
	slab, err := v.read(ctx, rank, step)
	if err != nil {
		return nil, err
	}
	return slab, nil
}

// Checksum implements fs.View.
func (v *View) Checksum(ctx context.Context, rank, step uint64) (string, error) {
	slab, err := v.read(ctx, rank, step)
	if err != nil {
		return "", err
	}
	defer slab.Release()
	sum, err := slab.Sum(ctx)
	return fmt.Sprintf("xxh64:%016x", sum), err
}

// read is an open that is accounted for.
func (v *View) read(ctx context.Context, rank, step uint64) (*cache.Slab, error) {
	account := v.views.config.Stalls.Open(v.job, rank)
	account.Thread = fs.Thread(ctx)
	slab, err := v.open(ctx, &account, rank, step)
	if err != nil {
		account.Done(0, err)
		return nil, err
	}
	account.Done(slab.Size(), nil)
	return slab, nil
}

// open settles the view, and has the cache find the slab or make it.
func (v *View) open(ctx context.Context, account *stall.Open, rank, step uint64) (slab *cache.Slab, err error) {
	if err := v.settle(ctx, account, rank); err != nil {
		return nil, err
	}
	a := v.now()
	err = a.Version.Source.Retry(ctx, account, func() (err error) {
		slab, err = v.views.cache.Open(ctx, account, a.Batches, rank, step)
		return err
	})
	if err != nil {
		err = fmt.Errorf("dataset %s: %w", v.Dataset(), catalog.Reindex(err, v.Dataset()))
		return nil, v.withRoomFor(err)
	}
	return slab, nil
}
