package hdfs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
)

// Whereabouts are the hosts of the chunks that are no longer on the hosts of the index:
// replicas move, and datanodes die. The lock guards the table, which is made anew at each
// look and never changed.
type whereabouts struct {
	cluster *cluster
	index   *index.Index
	whole   bool // a chunk is whole files
	cancel  context.CancelFunc
	done    chan struct{}

	mu struct {
		sync.Mutex
		moved map[int][]string
	}
}

// newWhereabouts starts a goroutine that looks for all chunks every so often.
func newWhereabouts(c *cluster, x *index.Index, whole bool, every time.Duration) *whereabouts {
	ctx, cancel := context.WithCancel(context.Background())
	w := &whereabouts{cluster: c, index: x, whole: whole, cancel: cancel, done: make(chan struct{})}
	go w.run(ctx, every)
	return w
}

func (w *whereabouts) close() {
	w.cancel()
	<-w.done
}

func (w *whereabouts) run(ctx context.Context, every time.Duration) {
	defer close(w.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if moved, err := w.look(ctx); err == nil { // else the last hosts stay
			w.mu.Lock()
			w.mu.moved = moved
			w.mu.Unlock()
		}
	}
}

// hosts returns the hosts that hold a chunk, or nil if they are those of the index.
func (w *whereabouts) hosts(chunk int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.moved[chunk]
}

// look finds the chunks whose hosts are not those of the index. A file that is gone
// counts as unmoved: the watch makes the source stale.
func (w *whereabouts) look(ctx context.Context) (map[int][]string, error) {
	moved := make(map[int][]string)
	s := survey{cluster: w.cluster, index: w.index}
	for i := range w.index.Chunks() {
		c := w.index.Chunk(i)
		now, err := w.holders(ctx, &s, c)
		if err != nil {
			return nil, err
		}
		if now != nil && !slices.Equal(now, c.Hosts) {
			moved[i] = now
		}
	}
	return moved, nil
}

// holders returns the hosts that hold a chunk now, as a scan would name them. The
// result is nil if the chunk has no blocks, and empty but not nil if no host has one.
func (w *whereabouts) holders(ctx context.Context, s *survey, c index.Chunk) ([]string, error) {
	first := w.index.Extent(c.First)
	blocks, err := s.blocks(ctx, first.File)
	if err != nil {
		return nil, err
	}
	if !w.whole {
		at := first.Off
		if f := w.index.File(first.File); wholeStamp(f.Stamp) != f.Stamp { // a split, as if it were a file
			if _, err := fmt.Sscanf(strings.TrimPrefix(f.Stamp, wholeStamp(f.Stamp)), ";part=%d-", &at); err != nil {
				return nil, err
			}
		}
		i := slices.IndexFunc(blocks, func(b namenode.Block) bool { return at >= b.Off && at < b.Off+b.Size })
		if i < 0 {
			return nil, nil
		}
		return hosts(blocks[i]), nil
	}
	blocks = slices.Clone(blocks)
	for file := first.File + 1; file <= w.index.Extent(c.First+c.Records-1).File; file++ {
		more, err := s.blocks(ctx, file)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, more...)
	}
	if len(blocks) == 0 { // empty files
		return nil, nil
	}
	return hostsOfMost(blocks), nil
}

// A survey goes through the files of an index in their order, and asks for the
// blocks of as many as one page of a listing shows.
type survey struct {
	cluster *cluster
	index   *index.Index
	first   int                // number of the file that found[0] is of
	found   [][]namenode.Block // blocks of files from first on; none for a file that is gone
}

// maxSurveyed bounds the blocks that a survey holds at a time, unless a single file has
// more.
const maxSurveyed = 10_000

func (s *survey) blocks(ctx context.Context, file uint32) ([]namenode.Block, error) {
	at := int(file)
	if at < s.first || at >= s.first+len(s.found) {
		if err := s.ask(ctx, at); err != nil {
			return nil, err
		}
	}
	return s.found[at-s.first], nil
}

// ask finds the blocks of files from number at on.
func (s *survey) ask(ctx context.Context, at int) error {
	s.first, s.found = at, nil
	end := sameDir(s.index, at, s.index.Files())
	if end-at < worthAPage {
		f := s.index.File(uint32(at))
		size, err := sizeIn(f.Stamp)
		if err != nil {
			return err
		}
		located, err := s.cluster.names.Locate(ctx, f.Path, 0, size)
		if err != nil {
			return err
		}
		s.found = append(s.found, located.Blocks)
		return nil
	}
	return s.list(ctx, at, end)
}

// list asks for files of one directory.
func (s *survey) list(ctx context.Context, at, end int) error {
	dir, first := path.Split(s.index.File(uint32(at)).Path)
	n := 0
	err := s.cluster.names.ListAfter(ctx, path.Clean(dir), before(first), true, func(st namenode.Status) error {
		for ; at < end; at++ {
			name := path.Base(s.index.File(uint32(at)).Path)
			if listed(st.Name, name) < 0 {
				return nil
			}
			var blocks []namenode.Block
			if st.Name == name && st.Blocks != nil {
				blocks = st.Blocks.Blocks
			}
			if n += len(blocks); n > maxSurveyed && len(s.found) > 0 {
				return errSeen
			}
			s.found = append(s.found, blocks)
		}
		return errSeen
	})
	if errors.Is(err, errSeen) {
		err = nil
	}
	if err == nil && len(s.found) == 0 { // all behind it is gone
		s.found = make([][]namenode.Block, end-at)
	}
	return err
}
