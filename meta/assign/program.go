package assign

import "math/big"

// Weights say what a static division is to be best at. Only their relation
// matters.
type Weights struct {
	Local uint32 // of the share of chunks that are local
	Time  uint32 // of the least that the busiest rank can read over what it reads
}

// A Point is a division that none other beats both in locality and in time: ranks
// are equally fast, so that the busiest is done last.
type Point struct {
	Local int // chunks that are local
	Most  int // chunks that the busiest rank reads
}

// A Static is the best division for some weights, and what there was to
// choose from.
type Static struct {
	Division
	Curve []Point // equal shares first, each more local and longer than the one before
	Best  int     // the point of Curve that Division is
}

// Static solves DL-MPI's integer program for chunks of one size and ranks of one
// speed: of all divisions of the chunks among the ranks it finds the one with the
// most
//
//	Local * (local chunks)/chunks + Time * (least of the busiest rank)/(most of a rank)
//
// and of several the one that takes the shortest time.
//
// If no rank may have more than a quota, a maximum flow says how many chunks can be
// local. As the quota grows from equal shares on, a rank at a time may read one
// more, and one more search says whether that makes one more chunk local: each point
// costs as much as finding one path.
func (p *Planner) Static(of []int32, weights Weights) (Static, error) {
	if err := p.checkSets(of); err != nil {
		return Static{}, err
	}
	w := p.work()
	defer p.works.Put(w)
	var s Static
	sweep, err := newSweep(w, of)
	if err != nil {
		return Static{}, err
	}
	for more := true; more; more = sweep.next() {
		s.Curve = appendPoint(s.Curve, Point{sweep.local, sweep.most})
	}
	s.Best = best(s.Curve, len(of), weights)
	// Going there again costs less than remembering each division.
	if sweep, err = newSweep(w, of); err != nil {
		return Static{}, err
	}
	for sweep.local < s.Curve[s.Best].Local {
		sweep.next()
	}
	s.Division, err = sweep.division()
	return s, err
}

// appendPoint adds a point that is more local. One of the same time as the last
// takes its place.
func appendPoint(curve []Point, p Point) []Point {
	if n := len(curve); n > 0 && curve[n-1].Most == p.Most {
		curve = curve[:n-1]
	}
	return append(curve, p)
}

// best returns the point that scores most; the first of several.
func best(curve []Point, chunks int, w Weights) (index int) {
	var most *big.Rat
	for i, point := range curve {
		if score := point.score(curve[0].Most, chunks, w); most == nil || score.Cmp(most) > 0 {
			index, most = i, score
		}
	}
	return index
}

func (p Point) score(least, chunks int, w Weights) *big.Rat {
	if chunks == 0 {
		return new(big.Rat)
	}
	local := big.NewRat(int64(w.Local)*int64(p.Local), int64(chunks))
	return local.Add(local, big.NewRat(int64(w.Time)*int64(least), int64(p.Most)))
}
