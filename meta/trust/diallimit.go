package trust

import (
	"context"
	"sync"
)

// A dialLimit bounds the handshakes that are under way to one address: more than a port
// lets in of one host would be turned away there, and come again. Each address has its
// own, so that a host which is down delays dials to no other.
type dialLimit struct {
	places chan struct{}
	users  int // dials under way or waiting; the lock of dialLimits guards it
}

// dialLimits are the dial limits of a port. The lock guards the table of them.
type dialLimits struct {
	mu struct {
		sync.Mutex
		of map[string]*dialLimit // by address
	}
}

// maxHandshakes is half of what a port lets in of one host, for hosts with two nodes.
const maxHandshakes = 4

// do dials an address by dial, when it is its turn.
func (d *dialLimits) do(ctx context.Context, address string, dial func() error) error {
	l := d.enter(address)
	defer d.leave(address, l)
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
		return dial()
	case <-ctx.Done():
		return explain(ctx.Err())
	}
}

func (d *dialLimits) enter(address string) *dialLimit {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.mu.of[address]
	if l == nil {
		l = &dialLimit{places: make(chan struct{}, maxHandshakes)}
		d.mu.of[address] = l
	}
	l.users++
	return l
}

func (d *dialLimits) leave(address string, l *dialLimit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(d.mu.of, address)
	}
}
