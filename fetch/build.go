package fetch

import (
	"context"
	"fmt"

	"rankfs/fetch/index"
)

// Build scans a source and puts its index at path. After an error, or if ctx
// is cancelled, nothing is left there that was not there before. It calls
// progress, unless that is nil, from this goroutine.
func Build(ctx context.Context, src Source, path string, progress func(bytes, total int64, records uint64)) error {
	b, err := index.Create(path)
	if err != nil {
		return err
	}
	defer b.Abort()
	if progress == nil {
		progress = func(int64, int64, uint64) {}
	}
	var fingerprint string
	err = guard(nil, func() (err error) {
		fingerprint, err = src.Scan(ctx, b, func(bytes, total int64) { progress(bytes, total, b.Records()) })
		return err
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("build index: %w", err)
	}
	return b.Commit(fingerprint)
}
