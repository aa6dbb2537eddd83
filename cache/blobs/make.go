package blobs

import (
	"context"
	"errors"

	"rankfs/meta"
)

// Begin makes the files of an unfinished blob, with all of their room on the
// disk, or opens those of an earlier attempt: Match tells what is there.
func (b *Blob) Begin(ctx context.Context) error {
	err := b.roomy(func() error { return b.place(ctx) })
	if err != nil {
		return err
	}
	b.sums = newSums(b.size)
	if b.sums.file, err = b.reserved.Make(b.folders.Folder, b.name(summed), sumsBytes(b.size)); err != nil {
		return b.refused(err)
	}
	if err = b.sums.read(); err != nil {
		return err
	}
	if b.file, err = b.reserved.Make(b.folders.Folder, b.name(part), b.size); err != nil {
		return b.refused(err)
	}
	close(b.use.begun)
	return nil
}

// place finds room for an unfinished blob: where an earlier attempt is, if there is
// room for it, or else anywhere.
func (b *Blob) place(ctx context.Context) error {
	b.whole = false
	if b.miss(); b.reserved != nil {
		return nil
	}
	if b.folder = nil; !b.locate(part) {
		return b.reserve(ctx)
	}
	err := b.reserve(ctx)
	if !errors.Is(err, meta.ErrNoSpace) {
		return err
	}
	left := b.folder
	b.folder = nil
	if err = b.reserve(ctx); err == nil && b.folder.Dir() != left.Dir() {
		b.folders.erase(left, b.key)
	}
	return err
}
