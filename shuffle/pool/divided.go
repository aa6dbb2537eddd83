package pool

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/fault"
	"rankfs/meta/state"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/pieces"
	"rankfs/shuffle/record"
	"rankfs/shuffle/turns"
)

// A content is the bytes that are committed: those of one file, or of one and of another after it.
type content struct {
	file  *os.File // what was written, or what it was divided into
	rest  *os.File // what comes after that, if anything does
	size  int64    // of both
	after int64    // bytes of the rest
	sums  []uint64 // of all pieces of the file, if they are known
}

// joined has the bytes one after the other.
func (c content) joined() pieces.Joined {
	if c.rest == nil {
		return pieces.Joined{First: c.file, N: c.size}
	}
	return pieces.Joined{First: c.file, N: c.size - c.after, Rest: c.rest}
}

// offsets are the offsets that an attempt's writer has given.
func (f *files) offsets(spec meta.Stage, name string, size int64) (pieces.Offsets, error) {
	return pieces.ReadOffsets(f.maps.Memory().Path(name+mapfiles.Idx), spec, size)
}

// divides reports whether the pool puts the records of an attempt in order: it has no offsets,
// or they are to be sorted.
func divides(spec meta.Stage, given pieces.Offsets) bool {
	return spec.Records.Kind != meta.NoRecords && (given == nil || record.Spec(spec.Records).Ordered())
}

// divisor is into how many pieces records are divided: parts, or slices.
func divisor(spec meta.Stage) uint64 {
	if spec.Records.Ranges {
		return spec.Slices()
	}
	return spec.Parts
}

// divideInTurn is divide, once it is the turn of the job.
func (f *files) divideInTurn(ctx context.Context, g state.PoolStage, c *content, given pieces.Offsets) (pieces.Offsets, error) {
	done, err := f.work.Take(ctx, turns.PartyOf(g), 1, c.size)
	if err != nil {
		return nil, fmt.Errorf("divide it, which waits for others: %w", err)
	}
	defer done()
	return f.divide(ctx, g.Spec, c, given)
}

// divide replaces c by a file with its records grouped by part; if they stand so already, it keeps
// the file, with what is to follow them. The file is made in the job's memory, and so is the index
// by which records are sorted; what it is depends on the bytes that were written and on the spec
// alone.
func (f *files) divide(ctx context.Context, spec meta.Stage, c *content, given pieces.Offsets) (pieces.Offsets, error) {
	used := memory.Arenas{Dir: f.Dir}
	from, err := memory.MapFile(c.file, c.size)
	if err != nil {
		return nil, err
	}
	defer memory.Unmap(from)
	defer used.FreeAll()
	var is record.Divided
	err = fault.Guard(func() (err error) {
		is, err = record.Spec(spec.Records).Divide(ctx, from, given, divisor(spec), &used)
		return err
	})
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EFAULT): // a hole of what was written takes memory when it is read
		return nil, meta.Worded(meta.ErrNoSpace, "there is no room to divide it, which takes as much memory of the pool again as it has bytes, and 16 bytes for each record that is sorted or combined: mount with a larger --pool-ram, remove jobs, or write smaller maps: %w", err)
	case err != nil:
		return nil, err
	}
	switch n := int64(len(is.Bytes)); {
	case !is.AsWritten:
		c.file, c.size = used.Last(), n
	case n > 0:
		c.rest, c.after, c.size, c.sums = used.Last(), n, c.size+n, is.Sums
	}
	return is.Offsets, nil
}
