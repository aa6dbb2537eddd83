package splits

import (
	"fmt"
	"os"
	"runtime"

	"rankfs/fetch/index"
	"rankfs/meta"
)

// A Finder looks through splits for the indexes that other nodes make, as many at a time as
// there are cores. More is refused: the node that asks reads them itself.
type Finder struct {
	dir     string        // for what was found; empty: that of the system
	finding chan struct{} // holds one for each split that is looked through
}

// NewFinder returns one that puts what it found into a directory.
func NewFinder(dir string) *Finder {
	return &Finder{dir, make(chan struct{}, runtime.NumCPU())}
}

// maxFound bounds the bytes of what is found for another node.
const maxFound = 32 << 20

// Find has look find something. It returns a file without a name, for the caller to close, and
// how much of it was found. It may be called concurrently.
func (f *Finder) Find(look func(w *Findings) error) (*os.File, int64, error) {
	select {
	case f.finding <- struct{}{}:
		defer func() { <-f.finding }()
	default:
		return nil, 0, fmt.Errorf("node %w: it looks through %d splits for others", meta.ErrBusy, cap(f.finding))
	}
	if f.dir != "" {
		if err := os.MkdirAll(f.dir, 0700); err != nil {
			return nil, 0, err
		}
	}
	file, err := index.Unnamed(f.dir, ".split-*.tmp")
	if err != nil {
		return nil, 0, err
	}
	found, err := note(file, maxFound, look)
	if err != nil {
		found.close()
		return nil, 0, err
	}
	return found.file, found.left, nil
}
