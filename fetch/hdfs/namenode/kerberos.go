package namenode

import (
	"context"
	"errors"
	"net"
)

// Kerberos says how to prove who we are.
type Kerberos struct {
	// Service is the namenodes' principal, such as nn/_HOST@EXAMPLE.COM, where
	// _HOST stands for the host of the address.
	Service string
	// Protection is how packets may be guarded, best first: of
	// authentication, integrity, privacy.
	Protection []string
}

func (c *Client) greetKerberos(ctx context.Context, nc net.Conn, addr string) (wrapper, error) {
	return nil, errors.ErrUnsupported
}
