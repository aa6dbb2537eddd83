// Package heap answers which of many elements comes first, as container/heap does,
// without an interface around each element.
package heap

// An Element is ordered before another or not.
type Element[T any] interface{ Before(T) bool }

// A Heap has the element that comes first at its beginning. The zero value is empty.
type Heap[T Element[T]] []T

// Init makes a heap of elements in any order.
func (h Heap[T]) Init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// Push adds an element.
func (h *Heap[T]) Push(e T) {
	s := append(*h, e)
	i := len(s) - 1
	for ; i > 0; i = (i - 1) / 2 {
		above := (i - 1) / 2
		if !e.Before(s[above]) {
			break
		}
		s[i] = s[above]
	}
	s[i] = e
	*h = s
}

// Pop takes out the first of one or more.
func (h *Heap[T]) Pop() T {
	s := *h
	first, last := s[0], len(s)-1
	s[0] = s[last]
	clear(s[last:]) // what it points to may be freed
	*h = s[:last]
	h.down(0)
	return first
}

// Fix puts the first of one or more in its place after it has changed.
func (h Heap[T]) Fix() { h.down(0) }

func (h Heap[T]) down(i int) {
	if i >= len(h) {
		return
	}
	e := h[i]
	for {
		below := 2*i + 1
		if below >= len(h) {
			break
		}
		if below+1 < len(h) && h[below+1].Before(h[below]) {
			below++
		}
		if !h[below].Before(e) {
			break
		}
		h[i] = h[below]
		i = below
	}
	h[i] = e
}
