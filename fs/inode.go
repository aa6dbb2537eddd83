package fs

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"rankfs/meta"
)

// The fixed inodes. Those of the files below /.rankfs follow inoInfoFiles.
const (
	inoRoot = 1 + iota
	inoDatasets
	inoInfo
	inoPool // on which the pool is mounted
	inoInfoFiles
	inoViews = 1 << 16 // the first inode of the first view
)

// A kind says what a number stands for within its view.
type kind uint8

const (
	kindView kind = iota
	kindDescription
	kindLocality
	kindChunks
	kindRank
	kindQueue
	kindBatch
	kindOffsets
)

const (
	nameDescription = "dataset.json"
	nameLocality    = "locality"
	nameQueue       = "queue"
	nameChunks      = "chunks"
	rankPrefix      = "rank-"
	batchPrefix     = "batch-"
	offsetsSuffix   = ".idx"
	// fixed is the count of a view's numbers before those of its ranks, perRank
	// the count of each rank's numbers: its directory and its queue.
	fixed, perRank = 4, 2
)

// A node is the file or directory of an inode number.
type node struct {
	dir        *viewDir
	kind       kind
	rank, step uint64
}

// A viewDir is one name below /datasets with its run of inode numbers.
//
//	base + 0                           the directory
//	base + 1, 2, 3                     dataset.json, locality, chunks
//	base + 4 + 2 x rank                rank directories; ... + 1 their queues
//	base + 4 + 2 x ranks + 2 x (rank x steps + step)    batches,
//	                                       ... + 1      and their .idx
type viewDir struct {
	View
	name string
	base uint64
	made time.Time
	uses int       // opens of its batches, ever
	held int       // handles open now
	used time.Time // when a batch was opened last
}

// files is the count of inode numbers that a view of that shape takes, and whether
// it is allowed: the numbers of a mount last for 2^15 views of the largest size.
func files(ranks, steps uint64) (uint64, bool) {
	const maxNumbers = 1 << 48
	if steps != 0 && ranks > maxNumbers/4/steps {
		return 0, false
	}
	n := fixed + perRank*ranks + 2*ranks*steps
	return n, n <= maxNumbers
}

func (d *viewDir) ino(k kind, rank, step uint64) uint64 {
	switch k {
	case kindRank:
		return d.base + fixed + perRank*rank
	case kindQueue:
		return d.base + fixed + perRank*rank + 1
	case kindBatch:
		return d.base + fixed + perRank*d.Ranks + 2*(rank*d.Steps+step)
	case kindOffsets:
		return d.base + fixed + perRank*d.Ranks + 2*(rank*d.Steps+step) + 1
	}
	return d.base + uint64(k)
}

// node is the inverse of ino, for numbers of the directory's run.
func (d *viewDir) node(ino uint64) node {
	i := ino - d.base
	if i < fixed {
		return node{dir: d, kind: kind(i)}
	}
	if i -= fixed; i < perRank*d.Ranks {
		return node{dir: d, kind: kindRank + kind(i%perRank), rank: i / perRank}
	}
	i -= perRank * d.Ranks
	batch := i / 2
	return node{dir: d, kind: kindBatch + kind(i%2), rank: batch / d.Steps, step: batch % d.Steps}
}

// child finds a name in the directory n.
func (n node) child(name string) (node, bool) {
	switch n.kind {
	case kindView:
		switch {
		case name == nameDescription:
			return node{dir: n.dir, kind: kindDescription}, true
		case name == nameLocality:
			return node{dir: n.dir, kind: kindLocality}, true
		case name == nameChunks:
			return node{dir: n.dir, kind: kindChunks}, true
		}
		digits, ok := strings.CutPrefix(name, rankPrefix)
		rank, err := strconv.ParseUint(digits, 10, 64)
		n = node{dir: n.dir, kind: kindRank, rank: rank}
		return n, ok && err == nil && rank < n.dir.Ranks && n.name() == name
	case kindRank:
		if name == nameQueue {
			return node{dir: n.dir, kind: kindQueue, rank: n.rank}, true
		}
		base, isOffsets := strings.CutSuffix(name, offsetsSuffix)
		digits, ok := strings.CutPrefix(base, batchPrefix)
		step, err := strconv.ParseUint(digits, 10, 64)
		n.kind, n.step = kindBatch, step
		if isOffsets {
			n.kind = kindOffsets
		}
		return n, ok && err == nil && step < n.dir.Steps && n.name() == name
	}
	return node{}, false
}

// name is the name of n in its directory.
func (n node) name() string {
	return string(n.appendName(nil))
}

func (n node) appendName(b []byte) []byte {
	switch n.kind {
	case kindView:
		return append(b, n.dir.name...)
	case kindDescription:
		return append(b, nameDescription...)
	case kindLocality:
		return append(b, nameLocality...)
	case kindChunks:
		return append(b, nameChunks...)
	case kindRank:
		return strconv.AppendUint(append(b, rankPrefix...), n.rank, 10)
	case kindQueue:
		return append(b, nameQueue...)
	}
	b = append(b, batchPrefix...)
	for limit := uint64(100000); limit > n.step && limit > 1; limit /= 10 {
		b = append(b, '0')
	}
	b = strconv.AppendUint(b, n.step, 10)
	if n.kind == kindOffsets {
		b = append(b, offsetsSuffix...)
	}
	return b
}

func (n node) path() string {
	p := "datasets/" + n.dir.name
	if n.kind >= kindRank {
		p += "/" + rankPrefix + strconv.FormatUint(n.rank, 10)
	}
	if n.kind != kindView && n.kind != kindRank {
		p += "/" + n.name()
	}
	return p
}

func (n node) ino() uint64 { return n.dir.ino(n.kind, n.rank, n.step) }

func (n node) isDir() bool { return n.kind == kindView || n.kind == kindRank }

// size is st_size: exact, and known without fetching anything.
func (n node) size(ctx context.Context) (int64, error) {
	switch n.kind {
	case kindBatch:
		return n.dir.Size(ctx, n.rank, n.step)
	case kindOffsets:
		return 8 * int64(n.dir.Records(n.rank, n.step)+1), nil
	case kindLocality:
		return n.dir.Locality().size(), nil
	case kindChunks:
		return n.dir.Chunks().size(), nil
	case kindDescription:
		return int64(len(n.dir.Describe())), nil
	}
	return 0, nil
}

// views is the table of the names below /datasets that the kernel may know.
// A lookup of any name adds its view, so any user can add many: the table is
// bounded, and drops views without a read first. The lock guards the table, and uses, held
// and used of each viewDir, whose other fields never change.
type views struct {
	mu struct {
		sync.Mutex
		byName map[string]*viewDir
		byBase []*viewDir // ascending
		next   uint64
		drops  uint64 // of datasets
	}
}

// maxViews is far more than a node's jobs read at once; a view holds about a
// kilobyte.
const maxViews = 1024

func (v *views) init() {
	v.mu.byName = make(map[string]*viewDir)
	v.mu.next = inoViews
}

func (v *views) len() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.mu.byName)
}

func (v *views) byName(name string) *viewDir {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mu.byName[name]
}

// byIno finds the view that a number belongs to.
func (v *views) byIno(ino uint64) (node, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	low, high := 0, len(v.mu.byBase)
	for low < high {
		if mid := (low + high) / 2; v.mu.byBase[mid].base <= ino {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return node{}, false
	}
	d := v.mu.byBase[low-1]
	if n, _ := files(d.Ranks, d.Steps); ino-d.base >= n {
		return node{}, false
	}
	return d.node(ino), true
}

// drops is the number of datasets that were dropped.
func (v *views) drops() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mu.drops
}

// add enters a view under a name, and returns the view that it dropped for room,
// if any. If another lookup entered the name meanwhile, its view stays. One that was asked
// for before the last drop may be of what was dropped, and is not entered: d is nil.
func (v *views) add(name string, view View, drops uint64, now time.Time) (d *viewDir, gone *viewDir, err error) {
	d = &viewDir{View: view, name: name, made: now}
	n, ok := files(d.Ranks, d.Steps)
	if !ok {
		return nil, nil, fmt.Errorf("view %s %w: %d ranks of %d batches are too many files", name, meta.ErrInvalid, d.Ranks, d.Steps)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if old := v.mu.byName[name]; old != nil {
		return old, nil, nil
	}
	if drops != v.mu.drops {
		return nil, nil, nil
	}
	if n > math.MaxInt64-v.mu.next {
		return nil, nil, meta.Worded(meta.ErrBusy, "view %s: this mount has used up its inode numbers; unmount and mount again", name)
	}
	if len(v.mu.byName) >= maxViews {
		if gone = v.leastUsed(); gone == nil {
			return nil, nil, meta.Worded(meta.ErrBusy, "view %s: %d views are open", name, maxViews)
		}
		v.drop(gone)
	}
	d.base = v.mu.next
	v.mu.next += n
	v.mu.byName[name] = d
	v.mu.byBase = append(v.mu.byBase, d)
	return d, gone, nil
}

// leastUsed is the view to drop: of the views without open handles, one whose
// batches were never opened, or else the one whose last open is longest ago. It is
// nil if every view has open handles. mu is held.
func (v *views) leastUsed() *viewDir {
	var least *viewDir
	for _, d := range v.mu.byBase {
		if d.held > 0 {
			continue
		}
		if least == nil || (d.uses == 0) && (least.uses > 0) ||
			(d.uses == 0) == (least.uses == 0) && d.used.Before(least.used) {
			least = d
		}
	}
	return least
}

// drop takes a view out of the table. mu is held.
func (v *views) drop(d *viewDir) {
	delete(v.mu.byName, d.name)
	for i := range v.mu.byBase {
		if v.mu.byBase[i] == d {
			v.mu.byBase = append(v.mu.byBase[:i], v.mu.byBase[i+1:]...)
			return
		}
	}
}

// dropDataset takes every view of a dataset out of the table.
func (v *views) dropDataset(dataset string) (gone []*viewDir) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mu.drops++
	for _, d := range v.mu.byName {
		if d.Dataset == dataset {
			gone = append(gone, d)
		}
	}
	for _, d := range gone {
		v.drop(d)
	}
	return gone
}

// hold counts handles on a view's files: by is 1 or -1.
func (v *views) hold(d *viewDir, by int, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d.held += by
	if by > 0 {
		d.uses++
		d.used = now
	}
}

// modes of files and directories, before the umask.
const (
	modeFile = syscall.S_IFREG | 0444
	modeDir  = syscall.S_IFDIR | 0555
)
