package hdfs

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"rankfs/fetch/hdfs/namenode"
)

// Places remembers where blocks of a version of a source are, for as long as the
// namenode's answer is fresh: to ask the namenode about every single record would take
// longer than to read the record from a file of this host. A nil one remembers
// nothing. Its methods may be called concurrently. The lock guards the lists of blocks
// too, which are changed where they are.
type places struct {
	mu struct {
		sync.Mutex
		until time.Time                   // when all of known becomes invalid
		known map[string][]namenode.Block // of files by path, each in the order of offsets
		n     int
	}
}

const (
	// fresh is how long a place is used. A datanode deletes a replica that has moved
	// when the namenode tells it to, in reply to a heartbeat; one is sent every three
	// seconds.
	fresh = time.Second
	// maxPlaces bounds the blocks that are remembered, at a kilobyte or so each.
	maxPlaces = 10_000
)

func newPlaces() *places { return new(places) }

// find returns the block of a file that has the byte at a place, if it is known.
func (p *places) find(path string, at int64) (b namenode.Block, ok bool) {
	if p == nil {
		return b, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !time.Now().Before(p.mu.until) {
		return b, false
	}
	blocks := p.mu.known[path]
	i, ok := slices.BinarySearchFunc(blocks, at, byPlace)
	if !ok {
		i-- // the last that begins before
	}
	if i < 0 || at >= blocks[i].Off+blocks[i].Size {
		return b, false
	}
	return blocks[i], true
}

func byPlace(b namenode.Block, at int64) int { return cmp.Compare(b.Off, at) }

// put remembers blocks of a file.
func (p *places) put(path string, blocks []namenode.Block) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); !now.Before(p.mu.until) || p.mu.n+len(blocks) > maxPlaces {
		p.mu.until, p.mu.known, p.mu.n = now.Add(fresh), make(map[string][]namenode.Block), 0
	}
	known := p.mu.known[path]
	for _, b := range blocks[:min(len(blocks), maxPlaces)] {
		i, ok := slices.BinarySearchFunc(known, b.Off, byPlace)
		if ok {
			known[i] = b
			continue
		}
		known = slices.Insert(known, i, b)
		p.mu.n++
	}
	p.mu.known[path] = known
}
