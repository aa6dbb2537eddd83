package node

import (
	"fmt"
	"slices"
	"sync"

	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
)

// stretch is how many chunks are divided at once, or a step if that has more. On
// a thousand hosts that takes a second, and some 200 bytes for each chunk, while
// an epoch of a petabyte, which has eight stretches, would take gibibytes.
const stretch = 1 << 20

// Stretches are chunks, divided by where they are, one of each step for every
// rank, as many steps at a time as there are in a stretch. Each is as near as can
// be; the whole is too, unless those of the same hosts fill stretches.
type stretches struct {
	index *index.Index
	cut   meta.Cut
	chunk func(position uint64) uint64
	hosts *plan.Hosts
	ranks []int32 // their hosts
	racks bool    // count as well
	steps uint64  // of each stretch but the last
}

func newStretches(x *index.Index, c meta.Cut, chunk func(uint64) uint64, hosts *plan.Hosts, ranks []int32) *stretches {
	return &stretches{index: x, cut: c, chunk: chunk, hosts: hosts, ranks: ranks, steps: max(1, stretch/c.Global)}
}

func (s *stretches) near() *plan.Topology {
	if s.racks {
		return plan.NewTopologyByRack(s.index, s.hosts)
	}
	return plan.NewTopology(s.index, s.hosts)
}

// count is how many there are.
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

// placeChunks places the batches of a view whose batches are chunks.
func (p *filler) placeChunks(seats []plan.Seat, hosts *plan.Hosts, ranks []int32) {
	s := newStretches(p.content.index, p.cut, p.order.At, hosts, ranks)
	s.racks = true
	if !s.near().Matters() {
		return
	}
	p.id = p.identify(p.decidedBy(seats) + s.kind())
	p.placement = &placement{filler: p, chunks: s}
}

// chunkOf is the position of a batch that is a chunk, counted from base; none if
// the rank has none in the step.
func (l *placement) chunkOf(rank, step uint64) (of []int32, base uint64, err error) {
	s, number := l.chunks, step/l.chunks.steps
	d, err := l.filler.content.divisions.get(division{l.filler.id, number}, func() (assign.Division, error) {
		return s.divide(number)
	})
	if err != nil {
		return nil, 0, err
	}
	all, at := d.Of(int(rank)), step%s.steps
	if at >= uint64(len(all)) {
		return nil, 0, nil
	}
	return all[at : at+1], s.first(number), nil
}

// reader is who reads a position, and when, if its stretch is divided already.
func (l *placement) reader(position uint64) (rank, step uint64, ok bool) {
	if l.chunks == nil {
		return 0, 0, false
	}
	number := position / (l.chunks.steps * l.chunks.cut.Global)
	places := l.filler.content.divisions.places(division{l.filler.id, number})
	position -= l.chunks.first(number)
	if position >= uint64(len(places)) {
		return 0, 0, false
	}
	at := places[position]
	return uint64(at.rank), number*l.chunks.steps + uint64(at.step), true
}

// A division is a stretch of a plan.
type division struct {
	plan   [16]byte
	number uint64
}

// Bounds of the stretches that a dataset's plans remember, all together: those
// of two petabytes, 64 MiB, and thrice that where who reads what was asked.
const (
	keptPositions = 1 << 24
	keptDivisions = 256
)

// divisions remembers the stretches that were used last. Ranks go through an
// epoch side by side, so those of one node want the same ones.
type divisions struct {
	turn sync.Mutex // of who divides one: two at a time would take twice the memory

	mu struct {
		sync.Mutex
		kept []divided // the one used last at the end
	}
}

type divided struct {
	division
	assign.Division
	places func() []place // the inverse, made when it is asked for
}

// A place is whose turn a position is, and in which step of the stretch.
type place struct{ rank, step uint32 }

func newDivided(key division, d assign.Division) divided {
	return divided{key, d, sync.OnceValue(func() []place {
		places := make([]place, d.Len())
		for rank := range d.Ranks() {
			for step, position := range d.Of(rank) {
				places[position] = place{uint32(rank), uint32(step)}
			}
		}
		return places
	})}
}

// get finds a stretch, or has it divided.
func (d *divisions) get(key division, divide func() (assign.Division, error)) (assign.Division, error) {
	if found, ok := d.find(key); ok {
		return found.Division, nil
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	if found, ok := d.find(key); ok {
		return found.Division, nil
	}
	made, err := divide()
	if err == nil {
		d.keep(newDivided(key, made))
	}
	return made, err
}

// places are those of a stretch that is known; nil if it is not.
func (d *divisions) places(key division) []place {
	if found, ok := d.find(key); ok {
		return found.places()
	}
	return nil
}

func (d *divisions) find(key division) (divided, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.mu.kept, func(k divided) bool { return k.division == key })
	if i < 0 {
		return divided{}, false
	}
	found := d.mu.kept[i]
	copy(d.mu.kept[i:], d.mu.kept[i+1:])
	d.mu.kept[len(d.mu.kept)-1] = found
	return found, true
}

// keep remembers one, and forgets others for it.
func (d *divisions) keep(made divided) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.kept = append(d.mu.kept, made)
	sum, first := 0, len(d.mu.kept)
	for first > 0 && len(d.mu.kept)-first < keptDivisions && sum+d.mu.kept[first-1].Len() <= keptPositions {
		first--
		sum += d.mu.kept[first].Len()
	}
	d.mu.kept = slices.Delete(d.mu.kept, 0, min(first, len(d.mu.kept)-1))
}
