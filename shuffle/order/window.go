package order

// A windowed order is a shuffle for a reader of bounded memory, in three
// steps:
//
//  1. the source is turned by an amount that changes with the epoch, so that
//     the borders of what follows fall elsewhere in each;
//  2. the turned source is cut into blocks of 1/16 window, and the blocks are
//     taken in permuted order, so that a window holds records from 16 places
//     or 17;
//  3. that sequence is cut into windows, and each window is permuted.
//
// A reader that goes through the epoch in order reads a block once, whole,
// when the first window that needs it begins (a block that spans the end of
// the source is two runs; the others are one). Of what it has read, the
// current window can still need window records, and only the last block can
// reach past the window's end: it never holds more than window+block-1.
//
// The last block is short if block does not divide n. It is permuted with the
// others, so it stands anywhere in the sequence and shifts what follows it.
type windowed struct {
	n        uint64
	rotation uint64
	block    uint64 // records of a block
	blocks   permutation
	blockKey key
	short    uint64 // where the last block ends in the sequence
	missing  uint64 // records that the last block lacks
	window   uint64
	inner    permutation // of a whole window
	last     permutation // of the last window, if that is not whole
	innerKey key         // the i-th window's key is innerKey.of(i)
}

// BlocksPerWindow: with 16 blocks a window mixes well (docs/order.md) and still reads runs
// long enough for a disk.
const BlocksPerWindow = 16

// newWindowed needs 0 < window < n.
func newWindowed(n, window uint64, k key) windowed {
	block := max(1, window/BlocksPerWindow)
	count := (n-1)/block + 1
	w := windowed{
		n:        n,
		rotation: below(n, k.of(labelRotation).first),
		block:    block,
		blocks:   newPermutation(count),
		blockKey: k.of(labelBlocks),
		missing:  count*block - n,
		window:   window,
		inner:    newPermutation(window),
		innerKey: k.of(labelWindows),
	}
	w.short = (w.blocks.position(w.blockKey, count-1)+1)*block - w.missing
	if rest := n % window; rest != 0 {
		w.last = newPermutation(rest)
	}
	return w
}

func (w *windowed) at(position uint64) uint64 {
	i := position / w.window
	s := i*w.window + w.within(i).at(w.innerKey.of(i), position-i*w.window)
	if t := s + w.missing; s >= w.short {
		s = t
	}
	x := w.blocks.at(w.blockKey, s/w.block)*w.block + s%w.block
	return wrap(x+w.rotation, w.n)
}

func (w *windowed) position(record uint64) uint64 {
	x := wrap(record+w.n-w.rotation, w.n)
	s := w.blocks.position(w.blockKey, x/w.block)*w.block + x%w.block
	if s >= w.short {
		s -= w.missing
	}
	i := s / w.window
	return i*w.window + w.within(i).position(w.innerKey.of(i), s-i*w.window)
}

// within is the permutation of the i-th window.
func (w *windowed) within(i uint64) *permutation {
	if w.n-i*w.window < w.window {
		return &w.last
	}
	return &w.inner
}

// wrap is x mod n, for x < 2n.
func wrap(x, n uint64) uint64 {
	return min(x, x-n)
}
