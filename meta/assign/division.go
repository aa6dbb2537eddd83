package assign

import (
	"fmt"

	"rankfs/meta"
)

// MaxPositions is how many positions can be divided at once. Chunks that all have
// other holders, three and in two racks, take some 200 bytes each while they are
// divided: longer epochs, and those for which that is too much, are divided by
// stretches.
const MaxPositions = 1 << 22

// A Division says which positions each rank reads, in ascending order. The
// positions count from the beginning of the step or epoch that was divided.
type Division struct {
	start []int32 // rank r has list[start[r]:start[r+1]]
	list  []int32
}

// Ranks is the number of ranks.
func (d Division) Ranks() int { return max(len(d.start), 1) - 1 }

// Len is the number of positions of all ranks.
func (d Division) Len() int { return len(d.list) }

// Of returns the positions of one rank. The caller must not change them.
func (d Division) Of(rank int) []int32 {
	return d.list[d.start[rank]:d.start[rank+1]]
}

// Contiguous gives the first counts[0] positions to rank 0, the next
// counts[1] to rank 1, and so on.
func Contiguous(counts []int32) (Division, error) {
	d := Division{start: make([]int32, 1, len(counts)+1)}
	var sum int64
	for rank, n := range counts {
		if sum += int64(n); n < 0 || sum > MaxPositions {
			return Division{}, fmt.Errorf("share of %d positions of rank %d %w: use 0 or more, and %d in all", n, rank, meta.ErrInvalid, MaxPositions)
		}
		d.start = append(d.start, int32(sum))
	}
	d.list = make([]int32, sum)
	for p := range d.list {
		d.list[p] = int32(p)
	}
	return d, nil
}

// StrictStep is one step as assign=strict divides it.
func StrictStep(c meta.Cut, step uint64) (Division, error) { return StrictSteps(c, step, 1) }

// StrictSteps is n steps of an epoch from the first on, as assign=strict
// divides them. Positions from c.N on stand for the order begun again.
func StrictSteps(c meta.Cut, first, n uint64) (Division, error) {
	size := uint64(0)
	if n > 0 {
		last := c.Span(c.Ranks-1, first+n-1)
		size = last.First + last.Count - first*c.Global
	}
	if err := checkSize(c, size); err != nil {
		return Division{}, err
	}
	d := Division{start: make([]int32, c.Ranks+1), list: make([]int32, 0, size)}
	if n == 0 {
		return d, nil
	}
	base := first * c.Global
	for rank := range c.Ranks {
		if whole := c.Span(rank, first); n > 1 && whole.Count > 0 {
			for range n - 1 { // all steps but the last have the same size
				d.list = appendRun(d.list, whole, base)
				whole.First += c.Global
			}
		}
		d.list = appendRun(d.list, c.Span(rank, first+n-1), base)
		d.start[rank+1] = int32(len(d.list))
	}
	return d, nil
}

func checkSize(c meta.Cut, positions uint64) error {
	if positions > MaxPositions || c.Ranks > meta.MaxRanks {
		return fmt.Errorf("dividing %d positions among %d ranks by locality %w: use assign=strict, or at most %d positions",
			positions, c.Ranks, meta.ErrInvalid, MaxPositions)
	}
	return nil
}

func appendRun(list []int32, s meta.Span, base uint64) []int32 {
	for p := s.First - base; p < s.First-base+s.Count; p++ {
		list = append(list, int32(p))
	}
	return list
}
