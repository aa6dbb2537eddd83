package assign

import (
	"fmt"
	"math/big"

	"rankfs/meta"
)

// Weights say what a static division is to be best at. Only their relation
// matters.
type Weights struct {
	Local uint32 // of the share of chunks that are local
	Time  uint32 // of the shortest possible time over the time it takes
}

// A Point is a division that none other beats both in locality and in time.
type Point struct {
	Local int   // chunks that are local
	Time  Ratio // when the last rank is done: chunks over speed
}

// A Static is the best division for some weights, and what there was to
// choose from.
type Static struct {
	Division
	Curve []Point // the shortest time first, each more local and longer than the one before
	Best  int     // the point of Curve that Division is
}

// Static solves DL-MPI's integer program for chunks of one size: of all
// divisions of the chunks among ranks of different speeds, it finds the one
// with the most
//
//	Local * (local chunks)/chunks + Time * (shortest time)/time
//
// and of several the one that takes the shortest time. Rank r reads speeds[r]
// chunks in a unit of time; a rank of speed 0 gets none.
//
// A division that is done by a time T gives rank r at most floor(T*speed)
// chunks, so for each T a maximum flow says how many can be local. Only the
// times k/speed matter. As T grows from the shortest time past these, a rank
// at a time may read one more, and one more search says whether that makes one
// more chunk local: each point costs as much as finding one path.
func (p *Planner) Static(of []int32, speeds []uint32, weights Weights) (Static, error) {
	if err := p.checkSets(of); err != nil {
		return Static{}, err
	}
	if err := p.checkSpeeds(speeds); err != nil {
		return Static{}, err
	}
	w := p.works.Get().(*work)
	defer p.works.Put(w)
	var s Static
	sweep, err := newSweep(w, of, speeds)
	if err != nil {
		return Static{}, err
	}
	for more := true; more; more = sweep.next() {
		s.Curve = appendPoint(s.Curve, sweep.point())
	}
	s.Best = best(s.Curve, len(of), weights)
	// Going there again costs less than remembering each division.
	if sweep, err = newSweep(w, of, speeds); err != nil {
		return Static{}, err
	}
	for sweep.local < s.Curve[s.Best].Local {
		sweep.next()
	}
	s.Division, err = sweep.division()
	return s, err
}

func (p *Planner) checkSpeeds(speeds []uint32) error {
	if len(speeds) != len(p.nodeOf) {
		return fmt.Errorf("speeds of %d ranks %w: there are %d", len(speeds), meta.ErrInvalid, len(p.nodeOf))
	}
	for _, s := range speeds {
		if s > 0 {
			return nil
		}
	}
	return fmt.Errorf("speeds of 0 for all ranks %w: somebody has to read", meta.ErrInvalid)
}

// appendPoint adds a point that is more local. One of the same time as the
// last takes its place.
func appendPoint(curve []Point, p Point) []Point {
	if n := len(curve); n > 0 && curve[n-1].Time == p.Time {
		curve = curve[:n-1]
	}
	return append(curve, p)
}

// best returns the point that scores most; the first of several.
func best(curve []Point, chunks int, w Weights) (index int) {
	var most *big.Rat
	for i, point := range curve {
		if score := point.score(curve[0].Time, chunks, w); most == nil || score.Cmp(most) > 0 {
			index, most = i, score
		}
	}
	return index
}

func (p Point) score(shortest Ratio, chunks int, w Weights) *big.Rat {
	if chunks == 0 {
		return new(big.Rat)
	}
	local := big.NewRat(int64(w.Local)*int64(p.Local), int64(chunks))
	time := new(big.Rat).Quo(shortest.rat(), p.Time.rat())
	return local.Add(local, time.Mul(time, big.NewRat(int64(w.Time), 1)))
}

func (r Ratio) rat() *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(r.Num), new(big.Int).SetUint64(r.Den))
}
