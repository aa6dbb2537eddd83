package simulate

import (
	"math"

	"rankfs/cache/ahead"
	"rankfs/cache/policy"
	"rankfs/meta/heap"
)

// A node keeps the partitions that it owns.
type node struct {
	id         int32
	policy     policy.Policy
	items      []policy.Item
	partitions []int32      // by item: the partition
	uses       []policy.Use // that are known
	target     []policy.Level
	guard      []guard
	memory     int64 // used
	disk       int64
	ranked     [2]worths // of what may go: memory's, the disk's

	readers int // ranks that are reading
	workers int // that are free; below zero: so many more are to end
	crew    int // workers
	fills   ahead.Fills
	freed   bool // a worker has become free just now
	demand  queue[ticket]
	room    queue[ticket] // what workers wait for memory for
	speed   float64       // bytes a second of a fill, as measured
	moves   queue[int32]  // items to be moved to their targets
	moving  bool
	read    server
	write   server
	unpack  server
	pack    server
	out, in []int32 // chains that use the link
}

// A guard counts the reasons for which a partition stays where it is.
type guard struct {
	held    int32  // by so many batches
	used    int64  // the furthest step that had it
	loading bool   // on its way into memory
	moving  bool   // elsewhere
	stamp   uint32 // of its entry in worths
	known   bool   // that it is used
	waiting []int32
}

// A ticket is a batch of a rank.
type ticket struct {
	rank int32
	step int64
}

// media are the two budgets.
const (
	inMemory = iota
	onDisk
)

func medium(l policy.Level) int {
	if l == policy.Disk {
		return onDisk
	}
	return inMemory
}

// take changes what is used of the budget that a level has.
func (n *node) take(l policy.Level, bytes int64) {
	switch l {
	case policy.Disk:
		n.disk += bytes
	case policy.Packed, policy.RAM:
		n.memory += bytes
	}
}

// put says that an item is at a level now. Its bytes there were taken before.
func (n *node) put(i int32, l policy.Level) {
	it := &n.items[i]
	n.take(it.Now, -it.Bytes[it.Now])
	it.Now = l
	n.guard[i].stamp++
}

// free reports whether an item may be evicted.
func (n *node) free(i int32) bool {
	g := &n.guard[i]
	return n.items[i].Now > policy.Source && g.held == 0 && !g.loading && !g.moving
}

// rank enters an item among those that may go, for what it is worth now.
func (n *node) rank(i int32, next float64) {
	if !n.free(i) {
		return
	}
	g := &n.guard[i]
	g.stamp++
	n.ranked[medium(n.items[i].Now)].add(n, worth{n.policy.Worth(&n.items[i], next), i, g.stamp})
}

// least finds the item of a medium that is worth least, or nothing below limit.
func (n *node) least(m int, limit float64) (item int32, ok bool) {
	w := &n.ranked[m]
	for len(w.heap) > 0 && !w.heap[0].of(n) {
		w.heap.Pop()
	}
	if len(w.heap) == 0 || w.heap[0].worth >= limit {
		return 0, false
	}
	return w.heap[0].item, true
}

var anything = math.Inf(1)

// worths is a heap of items, the one worth least first. Entries of items that
// were used or moved since are void.
type worths struct{ heap heap.Heap[worth] }

// A worth is an entry of worths. It is void if the item was stamped anew since.
type worth struct {
	worth float64
	item  int32
	stamp uint32
}

func (w worth) of(n *node) bool { return n.guard[w.item].stamp == w.stamp && n.free(w.item) }

// Before is the order in which items leave.
func (w worth) Before(o worth) bool {
	return w.worth < o.worth || w.worth == o.worth && w.item < o.item
}

func (w *worths) add(n *node, e worth) {
	if len(w.heap) > 2*len(n.items)+64 {
		w.clean(n)
	}
	w.heap.Push(e)
}

// clean leaves out what is void.
func (w *worths) clean(n *node) {
	kept := w.heap[:0]
	for _, e := range w.heap {
		if e.of(n) {
			kept = append(kept, e)
		}
	}
	w.heap = kept
	w.heap.Init()
}

// A queue is first in, first out. It keeps its memory.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }
func (q *queue[T]) len() int { return len(q.items) - q.head }
func (q *queue[T]) clear()   { q.items, q.head = q.items[:0], 0 }
func (q *queue[T]) first() T { return q.items[q.head] }

func (q *queue[T]) pop() T {
	v := q.items[q.head]
	if q.head++; q.head > 64 && q.head > len(q.items)/2 {
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
	return v
}
