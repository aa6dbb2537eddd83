package policy

import (
	"math"

	"rankfs/meta/heap"
)

// A line is the times at which uses come, with spans as short cuts between
// them. A unit of flow from its begin to its end is a slab: along a span it
// keeps the span's item, along the line it is empty.
type line struct {
	spans  []span
	value  func(*span) float64
	starts [][]int32 // by time: spans
	ends   []int32   // by time: a span and one, or 0
	empty  []int32   // flow from each time to the next
	pot    []float64 // potentials: no arc that has room is shorter than they differ
	dist   []float64
	from   []int32 // arc by which a time was reached: a span and one, 0 forward, -1 back
	queue  heap.Heap[timed]
}

// flow chooses the spans that save most with so many slabs, by successive
// shortest paths, and gives the price of a slab from now to each time: a span
// that was left out costs at least what it saves, and one that was chosen at most.
func flow(spans []span, times int, slabs int64, value func(*span) float64) []float64 {
	l := &line{spans: spans, value: value, starts: make([][]int32, times), ends: make([]int32, times),
		empty: make([]int32, times), pot: make([]float64, times), dist: make([]float64, times), from: make([]int32, times)}
	for k := range spans {
		s := &spans[k]
		l.starts[s.from] = append(l.starts[s.from], int32(k))
		l.ends[s.to] = int32(k + 1)
	}
	l.first()
	// No more slabs than spans can ever be of use.
	for range min(slabs, int64(len(spans))) {
		l.shortest()
		if l.pot[times-1] > -1e-12 {
			break
		}
		l.push()
	}
	l.shortest()
	for t := range l.pot {
		l.pot[t] = -l.pot[t]
	}
	return l.pot
}

// first sets the potentials for no flow: the graph has no cycles yet.
func (l *line) first() {
	for t := 1; t < len(l.pot); t++ {
		l.pot[t] = l.pot[t-1]
		if k := l.ends[t]; k > 0 {
			s := &l.spans[k-1]
			l.pot[t] = math.Min(l.pot[t], l.pot[s.from]-l.value(s))
		}
	}
}

// shortest finds the shortest ways from the begin to all times, by Dijkstra on
// reduced lengths, and makes them the potentials.
func (l *line) shortest() {
	for t := range l.dist {
		l.dist[t] = math.Inf(1)
	}
	l.dist[0] = 0
	l.queue.Push(timed{})
	for len(l.queue) > 0 {
		if t := l.queue.Pop(); t.d <= l.dist[t.at] {
			l.leave(t.at)
		}
	}
	for t := range l.pot {
		l.pot[t] += l.dist[t]
	}
}

func (l *line) leave(t int32) {
	if int(t+1) < len(l.pot) {
		l.reach(t, t+1, 0, 0)
	}
	if t > 0 && l.empty[t-1] > 0 {
		l.reach(t, t-1, 0, -1)
	}
	for _, k := range l.starts[t] {
		if s := &l.spans[k]; s.level == Source {
			l.reach(t, s.to, -l.value(s), k+1)
		}
	}
	if k := l.ends[t]; k > 0 && l.spans[k-1].level == RAM {
		s := &l.spans[k-1]
		l.reach(t, s.from, l.value(s), k)
	}
}

func (l *line) reach(t, to int32, length float64, by int32) {
	// Rounding may make a length that is zero a little less.
	d := l.dist[t] + math.Max(0, length+l.pot[t]-l.pot[to])
	if d < l.dist[to] {
		l.dist[to], l.from[to] = d, by
		l.queue.Push(timed{to, d})
	}
}

// push sends a unit along the shortest way.
func (l *line) push() {
	for t := int32(len(l.pot) - 1); t > 0; {
		switch by := l.from[t]; {
		case by == 0:
			t--
			l.empty[t]++
		case by < 0:
			l.empty[t]--
			t++
		case l.spans[by-1].to == t:
			l.spans[by-1].level = RAM
			t = l.spans[by-1].from
		default:
			l.spans[by-1].level = Source
			t = l.spans[by-1].to
		}
	}
}

// A timed is a time of a line, and how far it is; the nearest comes first.
type timed struct {
	at int32
	d  float64
}

func (t timed) Before(o timed) bool { return t.d < o.d }
