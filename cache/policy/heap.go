package policy

// A spanHeap gives the span that ends last.
type spanHeap []*span

func (h *spanHeap) push(s *span) {
	*h = append(*h, s)
	up(*h, func(a, b *span) bool { return a.to > b.to })
}

func (h *spanHeap) pop() *span {
	return take((*[]*span)(h), func(a, b *span) bool { return a.to > b.to })
}

type timed struct {
	at int32
	d  float64
}

// A timeHeap gives what is nearest.
type timeHeap []timed

func (h *timeHeap) push(at int32, d float64) {
	*h = append(*h, timed{at, d})
	up(*h, func(a, b timed) bool { return a.d < b.d })
}

func (h *timeHeap) pop() (int32, float64) {
	t := take((*[]timed)(h), func(a, b timed) bool { return a.d < b.d })
	return t.at, t.d
}

// up moves the last element to its place.
func up[T any](h []T, first func(a, b T) bool) {
	for i := len(h) - 1; i > 0 && first(h[i], h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

// take removes the first element.
func take[T any](h *[]T, first func(a, b T) bool) T {
	s := *h
	top, n := s[0], len(s)-1
	s[0], *h = s[n], s[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			return top
		}
		if c+1 < n && first(s[c+1], s[c]) {
			c++
		}
		if !first(s[c], s[i]) {
			return top
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
}
