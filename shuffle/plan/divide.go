package plan

import (
	"fmt"
	"slices"

	"rankfs/meta"
	"rankfs/meta/assign"
)

// stretch is how many chunks are divided at once, or a step if that has more. On
// a thousand hosts that takes a second, and some 200 bytes for each chunk, while
// an epoch of a petabyte, which has eight stretches, would take gibibytes.
const stretch = 1 << 20

// Stretches are the chunks of an epoch, divided among ranks by where the chunks are,
// as many steps at a time as there are in a stretch.
//
// Each chunk is in one stretch, once; in each step every rank has one, as far as
// there are so many. A stretch is as near as can be; the whole is too, unless chunks
// of the same hosts fill stretches.
type stretches struct {
	index Index
	cut   meta.Cut
	chunk func(position uint64) uint64
	hosts *Hosts
	ranks []int32 // their hosts
	racks bool    // count as well
	steps uint64  // of each stretch but the last
}

func newStretches(x Index, c meta.Cut, chunk func(uint64) uint64, hosts *Hosts, ranks []int32) *stretches {
	return &stretches{index: x, cut: c, chunk: chunk, hosts: hosts, ranks: ranks, steps: max(1, stretch/c.Global)}
}

func (s *stretches) near() *Topology {
	if s.racks {
		return NewTopologyByRack(s.index, s.hosts)
	}
	return NewTopology(s.index, s.hosts)
}

// count is the number of stretches.
func (s *stretches) count() uint64 { return (s.cut.Steps() + s.steps - 1) / s.steps }

// kind tells what is divided so from what is divided as a whole.
func (s *stretches) kind() string {
	if s.count() < 2 {
		return ""
	}
	return fmt.Sprintf(" in stretches of %d steps", s.steps)
}

// first is the position with which a stretch begins.
func (s *stretches) first(number uint64) uint64 { return number * s.steps * s.cut.Global }

func (s *stretches) divide(number uint64) (assign.Division, error) {
	strict, err := assign.StrictSteps(s.cut, number*s.steps, min(s.steps, s.cut.Steps()-number*s.steps))
	if err != nil {
		return assign.Division{}, err
	}
	n, sets, of := s.near(), new(assign.Sets), make([]int32, strict.Len())
	for _, at := range s.inIndex(s.first(number), len(of)) {
		if of[at.position()], err = sets.Number(n.Holders(at.chunk())); err != nil {
			return assign.Division{}, err
		}
	}
	planner, err := assign.New(n.Cluster(s.ranks), sets)
	if err != nil {
		return assign.Division{}, err
	}
	return planner.Epoch(strict, of)
}

// A spot is a chunk, and its position in a stretch: what sorts by chunks.
type spot uint64

const positionBits = 21 // a stretch, or a step of as many ranks as there can be

func (s spot) chunk() int    { return int(s >> positionBits) }
func (s spot) position() int { return int(s & (1<<positionBits - 1)) }

// inIndex are the chunks of a stretch as they follow one another in the index: in
// the order of a shuffled epoch each would be waited for.
func (s *stretches) inIndex(first uint64, n int) []spot {
	spots := make([]spot, n)
	for i := range spots {
		spots[i] = spot(s.chunk((first+uint64(i))%s.cut.N)<<positionBits | uint64(i))
	}
	slices.Sort(spots)
	return spots
}
