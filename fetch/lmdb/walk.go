package lmdb

import (
	"context"
	"errors"
	"fmt"
	"io"

	"rankfs/meta"
)

// lookahead is how many leaves the kernel is asked to read before the walk looks at
// the first of them. A cold disk gives a page every 70 us or so to one thread, every
// 9 us to eight threads, and every 4 us to a walk that asked for a hundred.
const lookahead = 128

// A walker reads the trees of one snapshot. The file is hostile until proved
// otherwise: no number in it is used before it was compared with the file's
// size, no page is read twice as often as the file has pages, and nothing is
// mapped, so that a truncated file is a short read and not a fault.
//
// A walk reads branch and leaf pages and never an overflow page: a cursor of
// the C library wrapped in Go touches every value, which from a cold disk
// takes a hundred times longer.
type walker struct {
	file io.ReaderAt
	name string
	size int64
	head head
	ask  func(at, n int64) // has the kernel begin to read; nil if it cannot be asked
	left uint64            // pages that may still be read: more would be a page read again
}

func newWalker(file io.ReaderAt, name string, size int64, h head) *walker {
	return &walker{file: file, name: name, size: size, head: h}
}

// readHead returns the newer meta page of a file. It refuses a file if either meta
// page is damaged, as the C library does.
func readHead(file io.ReaderAt, name string) (head, error) {
	var heads [2]head
	var at int64
	for i := range heads {
		var b [metaSize]byte
		if err := readFull(file, b[:], at); err != nil {
			return head{}, fmt.Errorf("%s: page %d: %w", name, i, err)
		}
		h, err := decodeHead(b[:])
		if err != nil {
			return head{}, fmt.Errorf("%s: page %d: %w", name, i, err)
		}
		heads[i], at = h, h.page
	}
	if heads[0].page != heads[1].page {
		return head{}, fmt.Errorf("%s: page 1: page size %d, but %d in page 0: it %w", name, heads[1].page, heads[0].page, meta.ErrCorrupt)
	}
	if heads[1].txn > heads[0].txn {
		return heads[1], nil
	}
	return heads[0], nil
}

// readFull is ReadAt for which the end of the file is damage.
func readFull(file io.ReaderAt, b []byte, at int64) error {
	n, err := file.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("file ends %d bytes into it: it %w", n, meta.ErrCorrupt)
	}
	return err
}

func (w *walker) errorf(number uint64, format string, args ...any) error {
	return fmt.Errorf("%s: page %d: %w", w.name, number, fmt.Errorf(format, args...))
}

// pages is the number of pages that may be in use: those that the snapshot says, and
// not more than are in the file.
func (w *walker) pages() uint64 {
	return min(w.head.last+1, uint64(w.size/w.head.page))
}

// read fills p with a page.
func (w *walker) read(p page, number uint64, kind uint16) error {
	if err := readFull(w.file, p, int64(number)*w.head.page); err != nil {
		return w.errorf(number, "%w", err)
	}
	if err := p.check(number, kind); err != nil {
		return w.errorf(number, "%w", err)
	}
	return nil
}

// admit reports whether a page may be read that page from leads to.
func (w *walker) admit(number, from uint64) error {
	if number < 2 || number >= w.pages() {
		return w.errorf(from, "leads to page %d of %d: it %w", number, w.pages(), meta.ErrCorrupt)
	}
	if w.left == 0 {
		return w.errorf(from, "leads to more pages than the file has: it %w", meta.ErrCorrupt)
	}
	w.left--
	return nil
}

// walk calls emit with each leaf of t in the order of the keys. The page is
// emit's until it returns.
func (w *walker) walk(ctx context.Context, t tree, emit func(page) error) error {
	if t.root == noRoot && t.entries == 0 {
		return nil
	}
	if t.depth < 1 || t.depth > maxDepth {
		return w.errorf(t.root, "a tree of depth %d: it %w", t.depth, meta.ErrCorrupt)
	}
	w.left = w.pages()
	if err := w.admit(t.root, t.root); err != nil {
		return err
	}
	q := &queue{w: w, emit: emit, page: make(page, w.head.page)}
	if err := w.descend(ctx, t.root, int(t.depth), q); err != nil {
		return err
	}
	return q.flush()
}

// descend puts the leaves below a page into q, left to right. The tree is
// balanced, so the depth tells a leaf from a branch before either is read.
func (w *walker) descend(ctx context.Context, number uint64, depth int, q *queue) error {
	if depth == 1 {
		return q.push(number)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p := make(page, w.head.page)
	if err := w.read(p, number, pageBranch); err != nil {
		return err
	}
	for i := range p.nodes() {
		if err := w.admit(p.child(i), number); err != nil {
			return err
		}
		if err := w.descend(ctx, p.child(i), depth-1, q); err != nil {
			return err
		}
	}
	return nil
}

// A queue reads leaves in the order in which they were pushed, long after the
// kernel was asked for them. The kernel reads them side by side; threads that
// wait for a page each would take longer to wake than the disk to answer.
type queue struct {
	w       *walker
	emit    func(page) error
	page    page
	numbers [lookahead]uint64
	first   int // the oldest in use
	used    int
}

func (q *queue) push(number uint64) error {
	if q.used == lookahead {
		if err := q.pop(); err != nil {
			return err
		}
	}
	if q.w.ask != nil {
		q.w.ask(int64(number)*q.w.head.page, q.w.head.page)
	}
	q.numbers[(q.first+q.used)%lookahead] = number
	q.used++
	return nil
}

func (q *queue) pop() error {
	number := q.numbers[q.first]
	q.first, q.used = (q.first+1)%lookahead, q.used-1
	if err := q.w.read(q.page, number, pageLeaf); err != nil {
		return err
	}
	return q.emit(q.page)
}

func (q *queue) flush() error {
	for q.used > 0 {
		if err := q.pop(); err != nil {
			return err
		}
	}
	return nil
}
