package trust

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"rankfs/meta"
)

// Loopback reports whether only this host can reach HOST:PORT when it is
// listened on. An empty host is every address; a name is as safe as the least
// safe of its addresses.
func Loopback(ctx context.Context, address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("address %q %w: want HOST:PORT", address, meta.ErrInvalid)
	}
	if host == "" {
		return false, nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback(), nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return false, fmt.Errorf("address %q: %w", address, err)
	}
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return false, nil
		}
	}
	return len(ips) > 0, nil
}
