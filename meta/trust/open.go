package trust

import (
	"context"
	"crypto/tls"
	"maps"
	"slices"
)

// Open listens. A protocol is refused until its Listener is asked for.
func Open(ctx context.Context, config Config) (*Port, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	if config.TCP == nil {
		if config.TCP, err = Listen(ctx, config.Address); err != nil {
			return nil, err
		}
	}
	p := &Port{config: config, tcp: config.TCP}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.pending = pendingConns{limit: config.Pending, perHost: config.PendingPerHost, patience: patience}
	p.ledger = ledger{log: config.Log}
	p.ledger.mu.counts = make(map[reason]uint64)
	p.mu.peers = make(map[string]map[*conn]struct{})
	p.mu.listeners = make(map[Protocol]*arrivals)
	p.limits.mu.of = make(map[string]*dialLimit)
	p.servers = make(map[Protocol]*tls.Config)
	for _, name := range protocols {
		p.servers[Protocol(name)] = p.serverConfig(Protocol(name))
	}
	p.wg.Go(p.acceptAll)
	return p, nil
}

// Close ends all connections and waits for everything that the port began.
func (p *Port) Close() error {
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return nil
	}
	p.mu.closed = true
	var open []*conn
	for _, conns := range p.mu.peers {
		open = slices.AppendSeq(open, maps.Keys(conns))
	}
	listeners := maps.Clone(p.mu.listeners)
	p.mu.Unlock()

	p.cancel()
	err := p.tcp.Close()
	p.pending.shut()
	for _, c := range open {
		c.cut()
	}
	p.wg.Wait()
	for protocol, a := range listeners { // no goroutine delivers to them any more
		(&listener{a, p, protocol}).Close()
	}
	return err
}

// Revoke ends all connections with a node at once, in both directions, and returns how
// many there were.
func (p *Port) Revoke(node string) int {
	if !isID(node) {
		return 0
	}
	p.mu.Lock()
	open := slices.Collect(maps.Keys(p.mu.peers[node]))
	p.mu.Unlock()
	for _, c := range open {
		c.cut()
	}
	return len(open)
}
