package trust

// Arrivals are the connections of one protocol on their way to its listener. The port's lock
// guards the fields but the channels.
type arrivals struct {
	queue    chan *conn // never full: a place is reserved before a connection is greeted
	done     chan struct{}
	waiting  int // places reserved and connections in the queue
	shutdown bool
}

// shut ends waiting Accepts. The port's lock is held.
func (a *arrivals) shut() {
	a.shutdown = true
	close(a.done)
}
