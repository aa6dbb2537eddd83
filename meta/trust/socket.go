package trust

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A peer whose host has died sends nothing more, and TCP alone may wait for it
// for hours. An idle connection is probed and given up after 25 s. With bytes
// under way it is silence for userTimeout that ends it; Linux takes a reader
// that stands still, its buffers full, for silence too, so this is as long as
// a rank may hold up a stream.
var probes = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

const userTimeout = 60 * time.Second

// tune is for sockets before they are bound or connected; accepted ones
// inherit it.
func tune(_, _ string, raw syscall.RawConn) error {
	var err error
	control := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout/time.Millisecond))
	})
	if control != nil {
		return control
	}
	return err
}
