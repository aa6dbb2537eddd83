package group

import (
	"context"
	"net"

	"rankfs/meta/trust"
)

// links are connections to the ports of other nodes. What a node learns of its own
// standing where it is let in, or is not, is noted at each.
type links struct {
	config    *Config
	directory *directory
	standing  *standing
}

// Dial connects to a node's port.
func (l *links) Dial(ctx context.Context, id string, p trust.Protocol) (net.Conn, error) {
	addr, err := l.directory.address(id)
	if err != nil {
		return nil, err
	}
	return l.dialAt(ctx, addr, id, p)
}

// dialAt connects to the port of a node that is at an address.
func (l *links) dialAt(ctx context.Context, addr, id string, p trust.Protocol) (net.Conn, error) {
	conn, err := l.config.Port.Dial(ctx, addr, id, p)
	l.standing.dialled(err)
	return conn, err
}
