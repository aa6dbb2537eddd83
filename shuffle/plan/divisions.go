package plan

import (
	"slices"
	"sync"

	"rankfs/meta/assign"
)

// A division is a stretch of a plan.
type division struct {
	plan   [16]byte
	number uint64
}

// Bounds of the stretches that a dataset's plans remember, all together: those of
// two petabytes. They take 64 MiB, and three times that once places was called.
const (
	keptPositions = 1 << 24
	keptDivisions = 256
)

// Divisions remembers the stretches that were used last: no more than the bounds
// say, and always the last one. One stretch is divided at a time. Ranks go through
// an epoch side by side, so those of one node want the same ones. The lock mu guards the
// list alone, and is taken after dividing.
type divisions struct {
	dividing sync.Mutex // held while one is divided: two at a time would take twice the memory

	mu struct {
		sync.Mutex
		kept []divided // the one used last at the end
	}
}

// A divided is the division of one stretch, and its inverse.
type divided struct {
	division
	assign.Division
	places func() []place // the inverse, made when it is asked for
}

// A place is the rank that reads a position, and its step of the stretch.
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
	d.dividing.Lock()
	defer d.dividing.Unlock()
	if found, ok := d.find(key); ok {
		return found.Division, nil
	}
	made, err := divide()
	if err == nil {
		d.keep(newDivided(key, made))
	}
	return made, err
}

// places are the places of a stretch that is known; nil if it is not.
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
