package ledger

// Names number what very many rows name: each name is kept once, for as
// long as it is in use.
type Names[N comparable] struct {
	all     []name[N]
	numbers map[N]uint32
	free    []uint32 // numbers
}

type name[N comparable] struct {
	name N
	uses int
}

// Take returns the number of a name, for one more use.
func (p *Names[N]) Take(of N) uint32 {
	n, known := p.numbers[of]
	switch last := len(p.free) - 1; {
	case known:
	case last >= 0:
		n, p.free = p.free[last], p.free[:last]
		p.all[n].name, p.numbers[of] = of, n
	default:
		if p.numbers == nil {
			p.numbers = make(map[N]uint32)
		}
		n = uint32(len(p.all))
		p.all, p.numbers[of] = append(p.all, name[N]{name: of}), n
	}
	p.all[n].uses++
	return n
}

// Give is Take undone. It reports whether that was the last use.
func (p *Names[N]) Give(n uint32) bool {
	if p.all[n].uses--; p.all[n].uses > 0 {
		return false
	}
	delete(p.numbers, p.all[n].name)
	p.all[n].name = *new(N)
	p.free = append(p.free, n)
	return true
}

// Of is the name of a number that is in use.
func (p *Names[N]) Of(n uint32) N { return p.all[n].name }

// Len is the number of names in use.
func (p *Names[N]) Len() int { return len(p.numbers) }
