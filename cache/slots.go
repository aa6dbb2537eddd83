package cache

import "math/bits"

const (
	// slotBytes bounds what stands in a slot. What is larger has a file of its
	// own always: beside so much the kernel's kilobyte for a file is nothing, and
	// to copy it at an open would be felt.
	slotBytes = 128 << 10

	blockPages = 512
)

// slots says which pages of a file are taken, by runs of up to slotBytes. Runs of
// different lengths are in different blocks, so that one that is given back is
// as good for the next one: nothing is ever moved. It is not for concurrent use.
type slots struct {
	blocks    []block
	maxBlocks int
	empty     []uint32 // blocks that no run is in
	room      map[uint32][]uint32
}

// A block is blockPages pages, divided into runs of so many.
type block struct {
	pages uint32
	used  uint32
	place uint32 // in the list of those with room, while it has any
	taken [blockPages / 64]uint64
}

func newSlots(maxBlocks int) *slots {
	return &slots{maxBlocks: maxBlocks, room: make(map[uint32][]uint32)}
}

// take returns the first of so many pages, one or more, that are free.
func (s *slots) take(pages uint32) (first uint32, ok bool) {
	if len(s.room[pages]) == 0 && !s.divide(pages) {
		return 0, false
	}
	list := s.room[pages]
	n := list[len(list)-1]
	b := &s.blocks[n]
	run := b.gap()
	b.taken[run/64] |= 1 << (run % 64)
	if b.used++; b.full() {
		s.room[pages] = list[:len(list)-1]
	}
	return n*blockPages + run*pages, true
}

// divide has a block of runs of so many pages.
func (s *slots) divide(pages uint32) bool {
	n := uint32(len(s.blocks))
	switch last := len(s.empty) - 1; {
	case last >= 0:
		n, s.empty = s.empty[last], s.empty[:last]
	case len(s.blocks) == s.maxBlocks:
		return false
	default:
		s.blocks = append(s.blocks, block{})
	}
	s.blocks[n] = block{pages: pages}
	s.offer(n)
	return true
}

// offer puts a block on the list of those with room.
func (s *slots) offer(n uint32) {
	b := &s.blocks[n]
	b.place = uint32(len(s.room[b.pages]))
	s.room[b.pages] = append(s.room[b.pages], n)
}

// withdraw takes a block off that list.
func (s *slots) withdraw(n uint32) {
	b := &s.blocks[n]
	list := s.room[b.pages]
	last := list[len(list)-1]
	list[b.place], s.blocks[last].place = last, b.place
	s.room[b.pages] = list[:len(list)-1]
}

// give is take undone.
func (s *slots) give(first uint32) {
	n := first / blockPages
	b := &s.blocks[n]
	run := first % blockPages / b.pages
	if b.full() {
		s.offer(n)
	}
	b.taken[run/64] &^= 1 << (run % 64)
	if b.used--; b.used == 0 {
		s.withdraw(n)
		s.empty = append(s.empty, n)
	}
}

func (b *block) full() bool { return b.used == blockPages/b.pages }

// gap is a free run of a block with room.
func (b *block) gap() uint32 {
	for i, word := range b.taken {
		if word != ^uint64(0) {
			return uint32(i*64 + bits.TrailingZeros64(^word))
		}
	}
	panic("cache: no room in a block with room")
}
