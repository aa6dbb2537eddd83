package disks

// plans number the plans that have slabs.
type plans struct {
	all     []plan
	numbers map[[16]byte]uint32
	free    []uint32 // numbers
}

type plan struct {
	id    [16]byte
	slabs uint32
}

// take returns the number of a plan, for one more slab.
func (p *plans) take(id [16]byte) uint32 {
	n, known := p.numbers[id]
	switch last := len(p.free) - 1; {
	case known:
	case last >= 0:
		n, p.free = p.free[last], p.free[:last]
		p.all[n].id, p.numbers[id] = id, n
	default:
		n = uint32(len(p.all))
		p.all, p.numbers[id] = append(p.all, plan{id: id}), n
	}
	p.all[n].slabs++
	return n
}

// give is take undone.
func (p *plans) give(n uint32) {
	if p.all[n].slabs--; p.all[n].slabs == 0 {
		delete(p.numbers, p.all[n].id)
		p.free = append(p.free, n)
	}
}
