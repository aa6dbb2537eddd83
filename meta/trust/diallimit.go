package trust

import "context"

// A dialLimit bounds the handshakes that are under way to one address: more than a port
// lets in of one host would be turned away there, and come again. Each address has its
// own, so that a host which is down delays dials to no other.
type dialLimit struct {
	places chan struct{}
	users  int // dials under way or waiting; guarded by the port's lock
}

// maxHandshakes is half of what a port lets in of one host, for hosts with two nodes.
const maxHandshakes = 4

// limited dials an address by do, when it is its turn.
func (p *Port) limited(ctx context.Context, address string, do func() error) error {
	l := p.limitOf(address)
	defer p.leaveLimit(address, l)
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
		return do()
	case <-ctx.Done():
		return explain(ctx.Err())
	}
}

func (p *Port) limitOf(address string) *dialLimit {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.mu.dialLimits[address]
	if l == nil {
		l = &dialLimit{places: make(chan struct{}, maxHandshakes)}
		p.mu.dialLimits[address] = l
	}
	l.users++
	return l
}

func (p *Port) leaveLimit(address string, l *dialLimit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(p.mu.dialLimits, address)
	}
}
