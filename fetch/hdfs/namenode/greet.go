package namenode

import (
	"context"
	"net"
)

// A wrapper signs or encrypts packets, as agreed on when the connection was
// opened. wrap and unwrap may run at the same time, but not twice.
type wrapper interface {
	wrap(packet []byte) ([]byte, error)
	unwrap(frame []byte) ([]byte, error)
}

// greet says who we are. The wrapper is nil if packets go as they are.
func (c *Client) greet(ctx context.Context, nc net.Conn, addr string) (wrapper, error) {
	if c.config.Kerberos != nil {
		return c.greetKerberos(ctx, nc, addr)
	}
	user, realUser := c.config.User, ""
	if c.config.ActFor != "" {
		user, realUser = c.config.ActFor, c.config.User
	}
	b, err := packet(c.id, contextID, connectionContext(user, realUser))
	if err != nil {
		return nil, err
	}
	_, err = nc.Write(append(preamble(authNone), b...))
	return nil, err
}
