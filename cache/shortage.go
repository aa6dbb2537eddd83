package cache

import (
	"fmt"

	"rankfs/meta"
)

// A Shortage is why opens wait for memory: ranks have so much of it open, or mapped,
// that a batch does not fit beside it, and there is no disk to serve it from. Or there
// is memory, and no file to be had for it. Or an open was refused, as the batch is larger
// than the memory, or than any disk. It wraps meta.ErrNoSpace.
type Shortage struct {
	Series  *Series // of the batch that is waited for
	Batches int     // that are open
	Held    int64   // what these take, and what is only mapped
	Size    int64   // of the one that is waited for
	Asked   int64   // of all that are waited for, and find no room or no worker
	Memory  int64
	Stuck   bool // the threads that hold it wait in such opens themselves
	NoFile  bool // the daemon may not have another descriptor or mapping, however much memory there is

	TooLarge bool // nothing is waited for: a slab of Size may be nowhere, and Memory is the most that one may take
}

func (s *Shortage) Error() string {
	if s.TooLarge {
		return fmt.Sprintf("a batch of %d bytes is larger than all room for one, of %d", s.Size, s.Memory) + ": " + meta.ErrNoSpace.Error()
	}
	if s.NoFile {
		return fmt.Sprintf("a batch of %d bytes lacks a file: the daemon may have no more, with %d batches open", s.Size, s.Batches)
	}
	text := fmt.Sprintf("ranks hold or map %d bytes of memory, in %d open batches, and another of %d bytes does not fit beside them in %d",
		s.Held, s.Batches, s.Size, s.Memory)
	if s.Stuck {
		text += ", nor will it, as those who hold them wait in opens themselves"
	}
	return text + ": " + meta.ErrNoSpace.Error()
}

func (s *Shortage) Unwrap() error { return meta.ErrNoSpace }
