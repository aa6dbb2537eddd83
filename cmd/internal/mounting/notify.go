package mounting

import (
	"net"
	"os"
)

// Notify tells systemd about the state of the service, if it asked for that:
// sd_notify(3) is one datagram.
func Notify(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	// A leading @ stands for the abstract name space, to package net too.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return // nothing can be done about it, and systemd says so in time
	}
	defer c.Close()
	_, _ = c.Write([]byte(state))
}
