package splits

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"rankfs/fetch/index"
	"rankfs/meta"
)

// A Look looks through the split that a request of another node means, and writes what the
// Source.Find of that node would. It checks the request. It may be called concurrently.
type Look func(ctx context.Context, request []byte, w *Findings) error

// A Finder looks through splits for the indexes that other nodes make, as many at a time as
// there are cores, of whichever sources. More is refused: the node that asks reads them itself.
type Finder struct {
	dir     string // for what was found; empty: that of the system
	max     int64  // bytes of what is found for another node
	looks   map[string]Look
	finding chan struct{} // holds one for each split that is looked through
}

// NewFinder returns one that looks through sources of some schemes, and puts what it found
// into a directory: for one split no more than so many bytes.
func NewFinder(dir string, max int64, looks map[string]Look) *Finder {
	return &Finder{dir, max, looks, make(chan struct{}, runtime.NumCPU())}
}

// Find has the split looked through that a request means, which is one of sources of a scheme.
// It returns a file without a name, for the caller to close, and how much of it was found. It
// may be called concurrently.
func (f *Finder) Find(ctx context.Context, scheme string, request []byte) (*os.File, int64, error) {
	look := f.looks[scheme]
	if look == nil {
		return nil, 0, meta.Worded(errors.ErrUnsupported,
			"this node does not look through sources of the scheme %.64q for others: its release is older than that of the node that asks; upgrade it", scheme)
	}
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
	found, err := note(file, f.max, func(w *Findings) error { return look(ctx, request, w) })
	if err != nil {
		found.close()
		return nil, 0, err
	}
	return found.file, found.left, nil
}
