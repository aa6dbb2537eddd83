package trust

import (
	"errors"
	"fmt"

	"rankfs/meta"
)

// A Protocol is one of the protocols that share a port, by its name in ALPN.
type Protocol string

const (
	Join Protocol = "rankfs-join/1" // asks for no certificate
	Raft Protocol = "rankfs-raft/1"
	Call Protocol = "rankfs-call/1"
	Data Protocol = "rankfs-data/1"
)

var protocols = []string{string(Join), string(Raft), string(Call), string(Data)}

// The greeting: one byte by which a server answers when it has looked at the client's
// certificate. In TLS 1.3 a client's handshake is over before that, so this is
// how Dial knows; and while its certificate is good it learns what else is wrong.
const (
	greetWelcome = 'w'
	greetRevoked = 'r' // of the cluster, but not let in
	greetBusy    = 'b' // too many connections
	greetNone    = 'n' // no listener for the protocol
)

// ErrRemoved is the answer to a node that was removed from its cluster.
var ErrRemoved = meta.Worded(meta.ErrDenied, "this node was removed from the cluster: unmount it, and mount it with another --state, "+
	"or with that directory moved away, as a new node: --join HOST:PORT and a token, from: rankfs token create")

// greeted turns a greeting into an error.
func greeted(b byte) error {
	switch b {
	case greetWelcome:
		return nil
	case greetRevoked:
		return ErrRemoved
	case greetBusy:
		return meta.Worded(meta.ErrBusy, "the node has all the connections that it will have; try again in a moment")
	case greetNone:
		return meta.Worded(meta.ErrUnavailable, "nothing listens there for this protocol")
	}
	return fmt.Errorf("greeting %w", meta.ErrCorrupt)
}

var (
	errVersion  = errors.New("client does not speak TLS 1.3")
	errProtocol = errors.New("client does not name one protocol of ours")
)
