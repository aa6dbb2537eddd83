package policy

// Peaks is a function of time, zero at first, of which parts can be raised and
// the highest value in a part be asked: a tree of maxima, O(log n) each.
type peaks struct {
	leaves int
	peak   []int64 // of each node, with what was added to it and below it
	added  []int64 // to all of a node's times
}

func newPeaks(n int) *peaks {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	return &peaks{leaves: leaves, peak: make([]int64, 2*leaves), added: make([]int64, 2*leaves)}
}

// add raises the function from a time to before another.
func (p *peaks) add(from, to int, by int64) { p.raise(1, 0, p.leaves, from, to, by) }

func (p *peaks) raise(node, low, high, from, to int, by int64) {
	if to <= low || high <= from {
		return
	}
	if from <= low && high <= to {
		p.peak[node] += by
		p.added[node] += by
		return
	}
	mid := (low + high) / 2
	p.raise(2*node, low, mid, from, to, by)
	p.raise(2*node+1, mid, high, from, to, by)
	p.peak[node] = max(p.peak[2*node], p.peak[2*node+1]) + p.added[node]
}

// most is its highest value from a time to before another.
func (p *peaks) most(from, to int) int64 { return p.ask(1, 0, p.leaves, from, to) }

func (p *peaks) ask(node, low, high, from, to int) int64 {
	if to <= low || high <= from {
		return 0
	}
	if from <= low && high <= to {
		return p.peak[node]
	}
	mid := (low + high) / 2
	return max(p.ask(2*node, low, mid, from, to), p.ask(2*node+1, mid, high, from, to)) + p.added[node]
}
