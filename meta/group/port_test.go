package group

import (
	"net"
	"testing"
)

// trustPort is an address on loopback that was free a moment ago.
func trustPort(t *testing.T) (string, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
