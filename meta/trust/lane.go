package trust

import "context"

// A lane leads to one address. Only so many handshakes are under way in it: more
// than a port lets in of one host would be turned away there, and come again.
// Each address has its own, so that a host which is down delays dials to no other.
type lane struct {
	places chan struct{}
	users  int // of the lane; guarded by the port's lock
}

// laneWidth is half of what a port lets in of one host, for hosts with two nodes.
const laneWidth = 4

// inLane does something in the lane to an address, when it is its turn.
func (p *Port) inLane(ctx context.Context, address string, do func() error) error {
	l := p.enterLane(address)
	defer p.leaveLane(address, l)
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
		return do()
	case <-ctx.Done():
		return explain(ctx.Err())
	}
}

func (p *Port) enterLane(address string) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.mu.lanes[address]
	if l == nil {
		l = &lane{places: make(chan struct{}, laneWidth)}
		p.mu.lanes[address] = l
	}
	l.users++
	return l
}

func (p *Port) leaveLane(address string, l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(p.mu.lanes, address)
	}
}
