package trace

import (
	"cmp"
	"math"
	"slices"
)

// A Graph says when a step is opened again, by where it stands in its view and by
// how long ago it had been opened before. All is in parts of the view's steps, so
// what was learnt on a small view holds for a large one: the same step again
// after as many others, however a program jumps about in between.
type Graph struct {
	regions []region // by parts of the view
}

// A region is a part of a view with the edges between uses of its steps.
type region struct {
	edges   []edge
	dropped uint64 // uses whose edges were too many
}

// An edge goes from one use of a step to the next.
type edge struct {
	before float64 // opens since the use before; zero: it was the first
	after  float64 // until the next one; infinite: there is none
	weight uint64  // how often that was seen
}

// The bounds of a graph: what it may know of a view, and how many opens are looked
// at to learn it, the latest.
const (
	maxRegions = 32
	maxEdges   = 16
	MaxLearnt  = 1 << 18

	// near is how much two distances may differ that are taken for one: of a view's
	// steps, or of themselves if they are longer.
	near = 1.0 / 16
)

// Graph learns from a trace. It is nil if no step was opened twice.
func (t *Trace) Graph() *Graph {
	type use struct{ at, before uint64 }
	g := &Graph{regions: make([]region, min(maxRegions, t.Steps))}
	last := make(map[uint64]use)
	at, longest, skip := uint64(0), uint64(0), max(t.Opens(), MaxLearnt)-MaxLearnt
	for s := range t.All() {
		at++
		if at <= skip {
			continue
		}
		was, again := last[s]
		now := use{at: at}
		if again {
			now.before = at - was.at
			longest = max(longest, now.before)
			g.add(s, t.Steps, edge{t.part(was.before), t.part(now.before), 1})
		}
		last[s] = now
	}
	if longest == 0 {
		return nil
	}
	for s, u := range last {
		if at-u.at > longest+longest/4 { // or the trace ended before it could come
			g.add(s, t.Steps, edge{t.part(u.before), math.Inf(1), 1})
		}
	}
	return g
}

func (t *Trace) part(opens uint64) float64 { return float64(opens) / float64(t.Steps) }

func (g *Graph) region(step, steps uint64) *region {
	return &g.regions[step*uint64(len(g.regions))/steps]
}

// add notes an edge, with those that are nearly the same. Where there are too many
// the lightest goes.
func (g *Graph) add(step, steps uint64, e edge) {
	r := g.region(step, steps)
	for i := range r.edges {
		if o := &r.edges[i]; (o.before == 0) == (e.before == 0) && apart(o.before, e.before) <= near && apart(o.after, e.after) <= near {
			o.weight++
			o.before += (e.before - o.before) / float64(o.weight)
			if !math.IsInf(o.after, 1) {
				o.after += (e.after - o.after) / float64(o.weight)
			}
			return
		}
	}
	if len(r.edges) < maxEdges {
		r.edges = append(r.edges, e)
		return
	}
	lightest := 0
	for i, o := range r.edges {
		if o.weight < r.edges[lightest].weight {
			lightest = i
		}
	}
	r.dropped += r.edges[lightest].weight
	r.edges[lightest] = e
}

// apart is the difference of two distances, as parts of the view's steps, or of
// themselves if they are longer.
func apart(a, b float64) float64 {
	if a == b {
		return 0
	}
	if math.IsInf(a, 1) || math.IsInf(b, 1) {
		return math.Inf(1)
	}
	return math.Abs(a-b) / max(a, b, 1)
}

// After is in how many opens a step, which is opened now and was opened so many opens
// before (zero: never), is opened again; infinite if it will not be. If the trace had now
// one distance, now another, it is their mean, and not sure; it is not known if no step
// of the region was like this one, or each was different.
func (g *Graph) After(step, steps, before uint64) (opens float64, sure, known bool) {
	r, past := g.region(step, steps), float64(before)/float64(steps)
	var best edge
	all, alike, again, sum := r.dropped, uint64(0), uint64(0), 0.0
	for _, e := range r.edges {
		all += e.weight
		if (e.before == 0) != (past == 0) || apart(e.before, past) > 2*near {
			continue
		}
		alike += e.weight
		if e.weight > best.weight {
			best = e
		}
		if !math.IsInf(e.after, 1) {
			again, sum = again+e.weight, sum+e.after*float64(e.weight)
		}
	}
	switch known = alike > 0 && 2*r.dropped < all; {
	case 2*best.weight > alike:
		return best.after * float64(steps), true, known
	case 2*again > alike:
		return sum / float64(again) * float64(steps), false, known
	}
	return 0, false, false
}

// A Reuse is after how many opens steps were opened again, as a part of the view's,
// and how often that was so.
type Reuse struct {
	After float64
	Times uint64
}

// Reuses are the edges of all regions by their length, the most frequent first.
func (g *Graph) Reuses() (all []Reuse) {
	if g == nil {
		return nil
	}
	for _, r := range g.regions {
		for _, e := range r.edges {
			i := slices.IndexFunc(all, func(o Reuse) bool { return apart(o.After, e.after) <= near })
			if i < 0 {
				all = append(all, Reuse{e.after, e.weight})
				continue
			}
			o := &all[i]
			o.Times += e.weight
			if !math.IsInf(o.After, 1) {
				o.After += (e.after - o.After) * float64(e.weight) / float64(o.Times)
			}
		}
	}
	slices.SortFunc(all, func(a, b Reuse) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.After, b.After))
	})
	return all
}
