package trust

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A Port is the one TCP port of a node. Its methods may be called concurrently.
//
// Each connection is among pendingConns until it has shown a certificate, and
// from then on one of its peer's; a connection that joins stays among the former. A connection
// is registered under its peer's id before Allowed is called: so the connection of a
// node that is revoked meanwhile is either refused, or found by Revoke.
//
// While its lock is held no other is taken: connections are closed without it, and pendingConns,
// the ledger and the limits of dials have their own.
type Port struct {
	config  Config
	tcp     *net.TCPListener
	servers map[Protocol]*tls.Config // once a client has named its protocol
	pending pendingConns
	ledger  ledger
	limits  dialLimits

	ctx    context.Context // of dialling
	cancel context.CancelFunc
	wg     sync.WaitGroup // accepting, handshakes, dialling

	mu struct {
		sync.Mutex
		closed    bool
		peers     map[string]map[*conn]struct{} // by node; "" has those that join
		in, out   int                           // connections; out counts those being dialled too
		listeners map[Protocol]*arrivals
	}
}

// Listen takes the address of a port, which one process at a time can have. Nodes that
// connect wait until the port is open.
func Listen(ctx context.Context, address string) (*net.TCPListener, error) {
	listen := net.ListenConfig{Control: tune, KeepAliveConfig: probes}
	listen.SetMultipathTCP(false) // its sockets do not take all of TCP's options
	tcp, err := listen.Listen(ctx, "tcp", cmp.Or(address, "127.0.0.1:0"))
	if err != nil {
		return nil, unheard(address, err)
	}
	return tcp.(*net.TCPListener), nil
}

// unheard explains why an address cannot be listened on. One that is not this host's
// now may be so later.
func unheard(address string, err error) error {
	var unknown *net.DNSError
	kind, why := error(nil), err.Error()
	switch {
	case errors.As(err, &unknown):
		kind, why = meta.ErrUnavailable, "the name of the host is not known here; give --listen a name or an address of this host"
	case errors.Is(err, unix.EADDRNOTAVAIL):
		kind, why = meta.ErrUnavailable, "this host has no such address; give --listen one that 'ip address' shows"
	case errors.Is(err, unix.EADDRINUSE):
		kind, why = meta.ErrExist, "another process listens there; give --listen another port"
	}
	return meta.Worded(kind, "listen at %s: %s", address, why)
}

// Addr is where the port listens.
func (p *Port) Addr() net.Addr { return p.tcp.Addr() }
