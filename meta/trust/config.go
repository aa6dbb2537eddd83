package trust

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"rankfs/meta"
)

// Config has a port's address, the identity of its node, and its limits.
type Config struct {
	Address   string           // HOST:PORT to listen on; empty: 127.0.0.1 and any free port
	TCP       *net.TCPListener // listens there already, and is the port's from now on; nil: Open does it
	Authority *Authority
	Identity  *Identity
	// Allowed reports whether a node, with the key of that fingerprint, may talk
	// to this one: whether it is of the cluster, not revoked, and came in with that
	// key. It is called at each handshake, concurrently, for peers that dial and peers
	// that are dialled, and must not block. Make it say no before calling Revoke.
	Allowed func(node, key string) bool
	Now     func() time.Time // of certificates; time.Now, if nil
	Log     *slog.Logger

	// Pending bounds the connections that have shown no certificate. A handshake
	// takes each end half a millisecond of a core and 90 KiB of garbage, so a
	// cluster of a thousand that starts anew gets through in a second or two.
	Pending int
	// PendingPerHost bounds those of one address, below Pending so that one host
	// cannot have all places, above the daemons that a host has in a test.
	PendingPerHost int
	// HandshakeTime bounds a handshake: several round trips round the world.
	HandshakeTime time.Duration
	// JoinTime bounds a connection that joins: Raft has to agree to it.
	JoinTime time.Duration
	// Connections bounds those accepted, and apart from them those dialled.
	Connections int
	// PerNode bounds those accepted of one node, which may have gone wild.
	PerNode int
	// Waiting bounds those accepted that their listener has not yet taken.
	Waiting int
}

func (c Config) withDefaults() (Config, error) {
	if c.Authority == nil || c.Identity == nil || c.Allowed == nil {
		return c, fmt.Errorf("port: authority, identity or who is allowed %w: it is missing", meta.ErrInvalid)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	setDefault(&c.Pending, 64)
	setDefault(&c.PendingPerHost, 8)
	setDefault(&c.HandshakeTime, 5*time.Second)
	setDefault(&c.JoinTime, 30*time.Second)
	setDefault(&c.Connections, 1024)
	setDefault(&c.PerNode, 128)
	setDefault(&c.Waiting, 64)
	return c, nil
}

func setDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// patience is how long a pending connection may stand in the way of others.
const patience = time.Second
