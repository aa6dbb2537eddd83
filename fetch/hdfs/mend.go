package hdfs

import (
	"context"
	"io"

	"rankfs/cache/blobs"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// ReadAt reads bytes that match their sums.
func (k *copied) ReadAt(p []byte, off int64) (int, error) {
	if err := k.trust(context.Background(), []index.Extent{{Off: off, Len: int64(len(p))}}); err != nil {
		return 0, err
	}
	return k.blob.ReadAt(p, off)
}

// trust makes sure that all granules which extents touch match their sums.
func (k *copied) trust(ctx context.Context, extents []index.Extent) error {
	var doubtful []int
	for _, e := range extents {
		end := min(blobs.Granules(e.Off+e.Len), blobs.Granules(k.of.Size))
		for i := int(e.Off / granule); i < end; i++ {
			if !k.blob.Proven(i) && (len(doubtful) == 0 || doubtful[len(doubtful)-1] != i) {
				doubtful = append(doubtful, i)
			}
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	return together(ctx, len(doubtful), func(ctx context.Context, i int) error { return k.prove(ctx, doubtful[i]) })
}

// prove compares a granule with its sum, and mends it if it does not match.
func (k *copied) prove(ctx context.Context, i int) error {
	buf := scanBuffers.Get().(*[granule]byte)
	defer scanBuffers.Put(buf)
	if k.blob.Proven(i) {
		return nil
	}
	if match, err := k.blob.Match(i, buf[:]); match && err == nil {
		return nil
	}
	select {
	case k.mending <- struct{}{}:
		defer func() { <-k.mending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	match, err := k.blob.Match(i, buf[:]) // another read may have mended it meanwhile
	if match && err == nil {
		return nil
	}
	k.set.log.Warn("copy damaged on disk: fetching the piece again", "file", k.of.path, "copy", k.blob.Path(), "piece", i, "cause", err)
	if err := k.mend(ctx, i, buf[:k.blob.Length(i)]); err != nil {
		return meta.Worded(meta.ErrCorrupt, "local copy of %q: piece %d is corrupt on disk, and was not fetched again: %w", k.of.path, i, err)
	}
	return nil
}

// mend fetches a granule again. It is stored only if the file is still the version
// that the copy is of.
func (k *copied) mend(ctx context.Context, i int, b []byte) error {
	at := int64(i) * granule
	in := k.source.open(ctx, k.of.path, at, at+int64(len(b)))
	defer in.Close()
	if _, err := io.ReadFull(in, b); err != nil {
		return err
	}
	if err := k.source.cluster.verify(ctx, index.File{Path: k.of.path, Stamp: k.of.stamp()}); err != nil {
		return err
	}
	return k.blob.Put(i, b)
}
