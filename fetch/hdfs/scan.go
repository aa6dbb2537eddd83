package hdfs

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
)

// maxPart bounds a part of a file: a node fetches a part at once, and its memory must
// hold many, even where HDFS blocks are of gigabytes.
const maxPart = 256 << 20

// A part is a run of bytes of one file that is on the same hosts: a block, or a
// piece of a very large one.
type part struct {
	number   int // among all parts of the scan
	file     int
	from, to int64
	hosts    []string
}

// A scan is the making of an index.
type scan struct {
	source *Source
	files  []file
	parts  []part
	total  int64
	store  *store
	known  map[int]uint32 // parts whose records the earlier index has: their rows there
	b      *index.Builder

	done func(bytes, total int64) // called by one goroutine
}

func newScan(s *Source, files []file, version string, b *index.Builder, done func(bytes, total int64)) *scan {
	k := &scan{source: s, files: files, b: b, done: done, store: newStore(s.clusters.config.Scratch, s.path, version)}
	for i, f := range files {
		k.total += f.Size
		for _, block := range f.Blocks.Blocks {
			k.cut(i, block)
		}
	}
	return k
}

// cut makes parts of a block.
func (s *scan) cut(file int, b namenode.Block) {
	for from := b.Off; from < b.Off+b.Size; from += maxPart {
		to := min(from+maxPart, b.Off+b.Size)
		s.parts = append(s.parts, part{len(s.parts), file, from, to, hosts(b)})
	}
}

func hosts(b namenode.Block) []string {
	names := make([]string, len(b.Replicas))
	for i, r := range b.Replicas {
		names[i] = r.Host
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addFile enters a file of the listing into the index's table.
func (s *scan) addFile(i int) uint32 {
	f := s.files[i]
	return s.b.AddFile(index.File{Path: f.path, Size: f.Size, Stamp: f.stamp()})
}

// forget removes the findings that were kept in case the scan is interrupted.
func (s *scan) forget() { s.store.remove() }

// scanners is how many parts are read at a time: enough to keep the cores busy
// while datanodes seek.
func scanners() int { return 2 * runtime.NumCPU() }

// each reads all parts, several at a time, with read, which writes its findings,
// and calls merge with those of each part, in order; without any for parts that are
// known. Findings of an earlier scan of the same version that was interrupted are used
// again.
func (s *scan) each(ctx context.Context, read func(ctx context.Context, p part, w *findings) error,
	merge func(p part, r *findings) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		found *findings
		err   error
	}
	results := make([]chan result, len(s.parts))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	ahead := make(chan struct{}, 4*scanners()) // parts read and not merged: each has a file open
	var work sync.WaitGroup
	next := make(chan part)
	for range min(scanners(), len(s.parts)) {
		work.Go(func() {
			for p := range next {
				if _, ok := s.known[p.number]; ok {
					results[p.number] <- result{}
					continue
				}
				found, err := s.store.get(p.number)
				if found == nil && err == nil {
					found, err = s.store.make(p.number, func(w *findings) error { return read(ctx, p, w) })
				}
				results[p.number] <- result{found, err}
			}
		})
	}
	go func() {
		defer close(next)
		for _, p := range s.parts {
			select {
			case ahead <- struct{}{}:
			case <-ctx.Done():
				return
			}
			select {
			case next <- p:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() { // closes findings that were not merged
		work.Wait()
		for _, r := range results {
			select {
			case r := <-r:
				r.found.close()
			default:
			}
		}
	}()
	defer cancel()
	read1 := int64(0)
	for _, p := range s.parts {
		select {
		case r := <-results[p.number]:
			if r.err != nil {
				return r.err
			}
			err := merge(p, r.found)
			r.found.close()
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		<-ahead
		read1 += p.to - p.from
		s.done(read1, s.total)
	}
	return nil
}

// hostsOfMost returns the hosts that hold most of the bytes of some blocks, at
// most three.
func hostsOfMost(blocks []namenode.Block) []string {
	held := make(map[string]int64)
	for _, b := range blocks {
		for _, h := range hosts(b) {
			held[h] += b.Size
		}
	}
	names := make([]string, 0, len(held))
	for h := range held {
		names = append(names, h)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(-cmp.Compare(held[a], held[b]), cmp.Compare(a, b)) })
	names = names[:min(3, len(names))]
	slices.Sort(names)
	return names
}

func (p part) String() string { return fmt.Sprintf("bytes %d to %d", p.from, p.to) }
