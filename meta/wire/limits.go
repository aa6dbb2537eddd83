package wire

import (
	"log/slog"
	"net"
	"time"
)

// Limits say what a Server does for others at most.
type Limits struct {
	Requests  int // calls under way at once; more would only share the wire
	PerPeer   int // of one node
	Pushes    int // the same of pushes, so that neither waits for the others
	PerPusher int
	Queue     int // calls that wait, and pushes
	Runs      int // of all requests, 16 bytes each
	Conns     int
	PeerConns int // of one node

	Wait  time.Duration // of a request for its turn
	Idle  time.Duration // of a connection between requests
	Ask   time.Duration // for a request to come in, or the next frame of a push
	Take  time.Duration // for a reader to take something
	Beat  time.Duration // between signs of life while there is nothing to send
	Store time.Duration // for a call to emit something, for a push to get something

	// Name says which node a connection is of. By default its address is
	// taken for a node's.
	Name func(net.Conn) string
	Log  *slog.Logger
}

func (l Limits) withDefaults() Limits {
	number := func(p *int, d int) {
		if *p == 0 {
			*p = d
		}
	}
	span := func(p *time.Duration, d time.Duration) {
		if *p == 0 {
			*p = d
		}
	}
	number(&l.Requests, 64) // some tens of nodes fill a batch at the same time
	number(&l.PerPeer, 8)   // twice what a Client asks
	number(&l.Pushes, 64)
	number(&l.PerPusher, 8)
	number(&l.Queue, 256)    // each holds a connection and its runs
	number(&l.Runs, 4<<20)   // 64 MiB
	number(&l.Conns, 4096)   // a thousand nodes; 20 KiB each, TLS's above all
	number(&l.PeerConns, 32) // a Client has 4; those that were cut may linger
	span(&l.Wait, 10*time.Second)
	span(&l.Idle, 2*time.Minute) // longer than a Client's
	span(&l.Ask, 10*time.Second)
	span(&l.Take, 30*time.Second)
	span(&l.Beat, 3*time.Second) // a third of a Client's patience
	span(&l.Store, time.Minute)  // a Client has given up by then, or is gone
	if l.Name == nil {
		l.Name = host
	}
	if l.Log == nil {
		l.Log = slog.New(slog.DiscardHandler)
	}
	return l
}

func host(c net.Conn) string {
	name, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return name
}

func (l *Limits) patience() patience {
	return patience{frame: l.Ask, take: l.Take, beat: l.Beat, nothing: l.Store}
}
