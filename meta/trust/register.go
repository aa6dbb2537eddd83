package trust

// register counts an accepted connection, and lets Revoke and Close find it.
func (p *Port) register(c *conn) reason {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed || p.mu.in >= p.config.Connections || c.peer != "" && p.inFrom(c.peer) >= p.config.PerNode {
		return refusedBusy
	}
	p.mu.in++
	p.add(c)
	return accepted
}

// inFrom counts the connections that a node has made.
func (p *Port) inFrom(node string) (n int) {
	for c := range p.mu.peers[node] {
		if c.pending != nil {
			n++
		}
	}
	return n
}

func (p *Port) add(c *conn) {
	if p.mu.peers[c.peer] == nil {
		p.mu.peers[c.peer] = make(map[*conn]struct{})
	}
	p.mu.peers[c.peer][c] = struct{}{}
}

// forget is the reverse of register, and of Dial.
func (p *Port) forget(c *conn) {
	if c.pending != nil {
		p.pending.leave(c.pending)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.mu.peers[c.peer][c]; !known {
		return
	}
	delete(p.mu.peers[c.peer], c)
	if len(p.mu.peers[c.peer]) == 0 {
		delete(p.mu.peers, c.peer)
	}
	if c.pending != nil {
		p.mu.in--
	} else {
		p.mu.out--
	}
}
