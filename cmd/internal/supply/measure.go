package supply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// measurers bounds how many ranks are measured at once. It is above the ranks
// of any node, since those that are not measured together do not settle their
// plan together.
const measurers = 512

// measure finds the size of each place's largest batch, so that its client may
// map its file once. What cannot be found in time stays 0.
func (c Config) measure(ctx context.Context, places []place) []int64 {
	largest := make([]int64, len(places))
	free := make(chan struct{}, measurers)
	var all sync.WaitGroup
	for i, at := range places {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			size, err := within(ctx, c.Timeout, func() (int64, error) { return at.largest(ctx) })
			if err != nil {
				c.Log.Warn("size of the largest batch is not known: the mapped file begins with less, and a client may have to map it again",
					"rank", at.rank, "cause", err)
			}
			largest[i] = size
		})
	}
	all.Wait()
	return largest
}

// batch is the path of one of the place's batches.
func (at place) batch(sequence uint64) string {
	return filepath.Join(at.directory, fmt.Sprintf("batch-%06d", sequence))
}

// has reports whether the rank has a batch of that number.
func (at place) has(sequence uint64) bool {
	var st unix.Stat_t
	return unix.Stat(at.batch(sequence), &st) == nil
}

// largest is the size of the rank's largest batch. Sizes follow from which rank reads
// what, which may be undecided until a rank reads. Opening a record table tells the
// daemon that this rank is here and settles that, but fetches nothing.
func (at place) largest(ctx context.Context) (size int64, err error) {
	if table, err := os.Open(at.batch(0) + ".idx"); err == nil {
		table.Close()
	}
	for k := uint64(0); ; k++ {
		if ctx.Err() != nil {
			return size, ctx.Err()
		}
		var st unix.Stat_t
		switch err := unix.Stat(at.batch(k), &st); {
		case errors.Is(err, unix.ENOENT):
			return size, nil
		case errors.Is(err, unix.EINTR):
			k--
		case err != nil:
			return size, fmt.Errorf("stat %s: %w", at.batch(k), err)
		case st.Mode&unix.S_IFMT == unix.S_IFREG:
			size = max(size, st.Size)
		}
	}
}
