package lmdb

import (
	"encoding/binary"
	"fmt"

	"rankfs/meta"
)

// The file format of LMDB 0.9 on a 64-bit little-endian machine. A file of
// another word size or byte order fails the first check of a meta page.
const (
	magic  = 0xBEEFC0DE
	format = 1

	pageHeader = 16 // bytes before a page's node table, and before an overflow value
	nodeHeader = 8
	metaSize   = 152 // a meta page's header and content
	treeSize   = 48

	minPage  = 512     // LMDB takes the page size of the machine that made the file ...
	maxPage  = 1 << 15 // ... but no more than this, for offsets in a page to fit 16 bits
	maxDepth = 32      // LMDB's own cursors go no deeper
	maxPages = 1 << 47 // page numbers have 48 bits in a branch

	noRoot = 1<<64 - 1 // the root of an empty tree
)

// Flags of a page.
const (
	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageOverflow = 0x04
	pageMeta     = 0x08
	pageKinds    = 0x6f // and pages of fixed-size and of nested duplicates
)

// Flags of a leaf's node.
const (
	nodeBig  = 0x01 // the value is on overflow pages
	nodeTree = 0x02 // the value is a named database, or a tree of duplicates
	nodeDups = 0x04 // the value is a page of duplicates
)

// Flags of a tree: kinds of sorted duplicates. The other flags say how keys
// compare, which does not matter to a walk of all keys in their order.
const treeDups = 0x04 | 0x10 | 0x20 | 0x40

var little = binary.LittleEndian

// A tree is the record of one database: where its B+tree begins.
type tree struct {
	flags, depth    uint16
	leaves, entries uint64
	root            uint64
}

func decodeTree(b []byte) tree {
	return tree{
		flags:   little.Uint16(b[4:]),
		depth:   little.Uint16(b[6:]),
		leaves:  little.Uint64(b[16:]),
		entries: little.Uint64(b[32:]),
		root:    little.Uint64(b[40:]),
	}
}

// A head is the content of one meta page: the way into one snapshot.
type head struct {
	page int64  // bytes of a page
	txn  uint64 // the transaction that made the snapshot
	last uint64 // the last page in use
	room uint64 // bytes that a writer may map
	free tree
	main tree
}

// decodeHead checks all that can be checked in a meta page by itself.
func decodeHead(b []byte) (head, error) {
	h := head{
		page: int64(little.Uint32(b[40:])),
		room: little.Uint64(b[32:]),
		free: decodeTree(b[40:]),
		main: decodeTree(b[88:]),
		last: little.Uint64(b[136:]),
		txn:  little.Uint64(b[144:]),
	}
	switch {
	case little.Uint16(b[10:])&pageMeta == 0 || little.Uint32(b[16:]) != magic:
		return h, fmt.Errorf("not an LMDB file of a 64-bit little-endian machine: it %w", meta.ErrCorrupt)
	case little.Uint32(b[20:]) != format:
		return h, fmt.Errorf("format version %d, only %d is known: it %w", little.Uint32(b[20:]), format, meta.ErrCorrupt)
	case h.page < minPage || h.page > maxPage || h.page&(h.page-1) != 0:
		return h, fmt.Errorf("page size %d: it %w", h.page, meta.ErrCorrupt)
	case h.last < 1 || h.last >= maxPages:
		return h, fmt.Errorf("last page %d: it %w", h.last, meta.ErrCorrupt)
	}
	return h, nil
}

// A page is the whole of one branch or leaf page that check has accepted.
type page []byte

func (p page) number() uint64 { return little.Uint64(p) }
func (p page) kind() uint16   { return little.Uint16(p[10:]) & pageKinds }
func (p page) nodes() int     { return (int(little.Uint16(p[12:])) - pageHeader) / 2 }
func (p page) offset(i int) int {
	return int(little.Uint16(p[pageHeader+2*i:]))
}

// check makes sure that every node of p stands inside p, clear of the node
// table, and that no two of them can be the same bytes.
func (p page) check(number uint64, kind uint16) error {
	if p.number() != number {
		return fmt.Errorf("it says that it is page %d: it %w", p.number(), meta.ErrCorrupt)
	}
	if p.kind() != kind {
		return fmt.Errorf("flags %#x where %#x is due: it %w", p.kind(), kind, meta.ErrCorrupt)
	}
	lower, upper := int(little.Uint16(p[12:])), int(little.Uint16(p[14:]))
	if lower < pageHeader || lower&1 != 0 || upper < lower || upper > len(p) {
		return fmt.Errorf("free space from %d to %d: it %w", lower, upper, meta.ErrCorrupt)
	}
	used := 0
	for i := range p.nodes() {
		size := p.nodeSize(i, upper)
		if size < 0 {
			return fmt.Errorf("node %d at %d leaves the page: it %w", i, p.offset(i), meta.ErrCorrupt)
		}
		used += size
	}
	if used > len(p)-upper {
		return fmt.Errorf("nodes of %d bytes in %d: it %w", used, len(p)-upper, meta.ErrCorrupt)
	}
	return nil
}

// nodeSize is the size of node i, or -1 if it is not wholly in p[upper:].
func (p page) nodeSize(i, upper int) int {
	at := p.offset(i)
	if at < upper || at > len(p)-nodeHeader {
		return -1
	}
	size := nodeHeader + int(little.Uint16(p[at+6:]))
	if p.kind() == pageLeaf {
		n := p.node(i)
		if n.flags&nodeBig != 0 {
			size += 8
		} else {
			size += int(n.size) // at most 2^32, so the sum fits
		}
	}
	if size > len(p)-at {
		return -1
	}
	return size
}

// child is the page that node i of a branch leads to.
func (p page) child(i int) uint64 {
	n := p[p.offset(i):]
	return uint64(little.Uint32(n)) | uint64(little.Uint16(n[4:]))<<32
}

// A node is an entry of a leaf.
type node struct {
	size  uint32 // of the value
	flags uint16
	key   int // where the key stands in the page
	value int // where the value, or the number of its first overflow page, stands
}

func (p page) node(i int) node {
	at := p.offset(i)
	return node{
		size:  little.Uint32(p[at:]),
		flags: little.Uint16(p[at+4:]),
		key:   at + nodeHeader,
		value: at + nodeHeader + int(little.Uint16(p[at+6:])),
	}
}
