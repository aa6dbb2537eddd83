package wire

import (
	"context"
	"io"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A Feed emits what is to be sent, in pieces of any length. A piece may be mapped
// memory: it is not used after emit has returned. After an error of emit, which waits
// while the other node takes nothing, the feed returns that; and it ends soon after ctx.
type Feed func(ctx context.Context, emit func([]byte) error) error

// feedBytes is how much of a reader is read at a time.
const feedBytes = 64 << 10

// From is a feed of all that r reads, by memory that is not Go's. R may wait for what
// it reads, as long as ctx does.
func From(r io.Reader) Feed {
	return func(ctx context.Context, emit func([]byte) error) error {
		b, err := unix.Mmap(-1, 0, feedBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return meta.Worded(meta.ErrBusy, "memory to read by: %w", err)
		}
		defer unix.Munmap(b)
		for {
			n, err := r.Read(b)
			if n > 0 {
				if err := emit(b[:n]); err != nil {
					return err
				}
			}
			switch {
			case err == io.EOF:
				return nil
			case err != nil:
				return err
			case ctx.Err() != nil:
				return context.Cause(ctx)
			}
		}
	}
}
