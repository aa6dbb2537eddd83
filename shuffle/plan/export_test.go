package plan

import "rankfs/meta/assign"

const (
	Stretch       = stretch
	KeptDivisions = keptDivisions
	KeptPositions = keptPositions
)

// InStretches makes p another plan, in stretches of so many steps.
func (p *Plan) InStretches(steps uint64) {
	p.id[0]++
	p.placement.id, p.placement.chunks.steps = p.id, steps
}

// Stretches is how many p has, and how many steps each.
func (p *Plan) Stretches() (count, steps uint64) {
	return p.placement.chunks.count(), p.placement.chunks.steps
}

// AsAWhole is the id that p would have were it divided as a whole.
func (p *Plan) AsAWhole(seats []Seat) [16]byte { return p.identify(p.decidedBy(seats)) }

// Kept is how many stretches are remembered.
func (v *Version) Kept() int { return len(v.divisions.mu.kept) }

// Divide gets a stretch from those remembered, or has it made.
func (v *Version) Divide(number uint64, divide func() (assign.Division, error)) error {
	_, err := v.divisions.get(division{number: number}, divide)
	return err
}

// Allot finds the owners of chunks.
func (v *Version) Allot(seats []Seat) error {
	_, err := v.allotments.allot(v.index, seats)
	return err
}

// OwnerHosts are the hosts that own chunks where ranks sit so.
func (v *Version) OwnerHosts(seats []Seat) (hosts []string, err error) {
	a, err := v.allotments.allot(v.index, seats)
	if err != nil {
		return nil, err
	}
	for _, n := range a.ownerOf {
		hosts = append(hosts, a.hosts[n])
	}
	return hosts, nil
}
