package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// A reader is a range of a file, read forward, block after block.
type reader struct {
	source *Source
	ctx    context.Context
	path   string
	places *places // remembered blocks; nil: the namenode is asked
	at, to int64
	blocks []namenode.Block // from the one that holds at on
	stream *datanode.Stream // nil if none is open
	again  bool             // the blocks were asked for anew at this offset: another failure there is final
}

// open begins to read [from, to) of a file. It does no I/O yet.
func (s *Source) open(ctx context.Context, path string, from, to int64) *reader {
	return &reader{source: s, ctx: ctx, path: path, at: from, to: to}
}

// Read gives out bytes that datanodes have sent with matching checksums. If no
// replica of a block can be read, the namenode is asked once more where it is:
// replicas move, and the keys to blocks expire.
func (r *reader) Read(p []byte) (int, error) {
	if r.at == r.to {
		return 0, io.EOF
	}
	for {
		if err := r.next(); err != nil {
			return 0, err
		}
		n, err := r.stream.Read(p)
		if n > 0 {
			r.at, r.again = r.at+int64(n), false
			return n, nil
		}
		r.Close()
		if err == io.EOF {
			r.blocks = r.blocks[1:]
			continue
		}
		if r.again || r.ctx.Err() != nil || !errors.Is(err, datanode.ErrNoReplica) {
			return 0, r.problem(err)
		}
		r.again, r.blocks = true, nil
		r.source.cluster.guardian.forget()
	}
}

// problem adds to an error the file, the offset, and the command that tells more.
func (r *reader) problem(err error) error {
	if errors.Is(err, datanode.ErrNoReplica) {
		return fmt.Errorf("read %q at %d: %w; see 'hdfs fsck %s -files -blocks -locations'", r.path, r.at, err, r.path)
	}
	return fmt.Errorf("read %q at %d: %w", r.path, r.at, err)
}

// next opens a stream of the block that holds the next byte.
func (r *reader) next() error {
	if r.stream != nil {
		return nil
	}
	if len(r.blocks) == 0 {
		if err := r.locate(); err != nil {
			return err
		}
	}
	b := r.blocks[0]
	if r.at < b.Off || r.at >= b.Off+b.Size {
		return stale(r.path, fmt.Sprintf("its block at %d begins at %d", r.at, b.Off))
	}
	end := min(r.to, b.Off+b.Size)
	r.stream = r.source.cluster.data.Open(r.ctx, b, r.at-b.Off, end-r.at)
	return nil
}

// locate finds where the next byte is, and asks where the rest of the range is if
// that is not known.
func (r *reader) locate() error {
	if b, ok := r.places.find(r.path, r.at); ok && !r.again {
		r.blocks = []namenode.Block{b}
		return nil
	}
	blocks, err := r.source.cluster.locate(r.ctx, r.path, r.at, r.to-r.at)
	if errors.Is(err, meta.ErrNotExist) && r.path != r.source.path { // of many
		return stale(r.path, "it is gone")
	}
	if err != nil {
		return r.source.gone(err)
	}
	if blocks.Size < r.to || len(blocks.Blocks) == 0 {
		return stale(r.path, fmt.Sprintf("it has %d bytes and had %d or more", blocks.Size, r.to))
	}
	r.blocks = blocks.Blocks
	r.places.put(r.path, r.blocks)
	return nil
}

// Close ends the stream.
func (r *reader) Close() error {
	if r.stream == nil {
		return nil
	}
	err := r.stream.Close()
	r.stream = nil
	return err
}

// streams is how many files are read at a time where many make up one read:
// a small file is mostly waiting.
const streams = 4

// Read implements fetch.Source. What it finds changed, Check knows from then on.
func (s *Source) Read(ctx context.Context, extents []index.Extent, dst []byte) error {
	err := s.read(ctx, extents, dst)
	s.watch.note(err)
	return err
}

// read asks the namenode after the copy whether the files are still the indexed ones.
func (s *Source) read(ctx context.Context, extents []index.Extent, dst []byte) error {
	reads := fileReads(extents, dst)
	if s.form.whole {
		reads = joined(reads)
	}
	err := together(ctx, len(reads), func(ctx context.Context, i int) error {
		return s.form.read(ctx, s, reads[i])
	})
	if err != nil {
		return err
	}
	return s.verify(ctx, reads)
}

// verify returns a stale error unless all files are still the indexed ones. Files that
// follow one another are checked together.
func (s *Source) verify(ctx context.Context, reads []fileRead) error {
	type run struct{ at, end int }
	var runs []run
	for _, r := range reads {
		if n := len(runs); n > 0 && runs[n-1].end == int(r.file) {
			runs[n-1].end++
			continue
		}
		runs = append(runs, run{int(r.file), int(r.file) + 1})
	}
	return together(ctx, len(runs), func(ctx context.Context, i int) (err error) {
		for r := runs[i]; r.at < r.end && err == nil; {
			r.at, err = s.cluster.compare(ctx, s.index, r.at, r.end)
		}
		return err
	})
}

func fileReads(extents []index.Extent, dst []byte) (reads []fileRead) {
	for len(extents) > 0 {
		n, size := 0, int64(0)
		for n < len(extents) && extents[n].File == extents[0].File {
			size += extents[n].Len
			n++
		}
		reads = append(reads, fileRead{extents[0].File, []segment{{extents[:n], dst[:size]}}})
		extents, dst = extents[n:], dst[size:]
	}
	return reads
}

// joined makes one read of all of a file.
func joined(reads []fileRead) []fileRead {
	slices.SortStableFunc(reads, func(a, b fileRead) int { return cmp.Compare(a.file, b.file) })
	n := 0
	for i, r := range reads {
		if i > 0 && reads[n-1].file == r.file {
			reads[n-1].segments = append(reads[n-1].segments, r.segments...)
			continue
		}
		reads[n] = r
		n++
	}
	return reads[:n]
}

// together does n things, several at a time, until one fails. It passes a memory fault
// in the destination on to the caller's goroutine, which knows what the fault means.
func together(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	if n == 1 {
		return do(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var work sync.WaitGroup
	var panicked atomic.Value
	for range min(streams, n) {
		work.Go(func() {
			ctx := stall.Fork(ctx)
			defer stall.Enter(ctx, stall.Source).Leave(0)
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() {
				if v := recover(); v != nil {
					panicked.CompareAndSwap(nil, &v)
					cancel(nil)
				}
			}()
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	idle := stall.Idle(ctx)
	work.Wait()
	idle.Leave(0)
	if v, ok := panicked.Load().(*any); ok {
		panic(*v)
	}
	return context.Cause(ctx)
}

// plain reads extents of a file that stand in it as they are.
func plain(ctx context.Context, s *Source, want fileRead) error {
	f := s.index.File(want.file)
	for _, p := range want.segments {
		dst := p.dst
		for _, e := range p.extents {
			if e.Len == 0 {
				continue
			}
			r := s.open(ctx, f.Path, e.Off, e.Off+e.Len)
			r.places = s.places
			_, err := io.ReadFull(r, dst[:e.Len])
			r.Close()
			if err != nil {
				return err
			}
			dst = dst[e.Len:]
		}
	}
	return nil
}
