// Package control is how tests speak to the keeper of a cluster: a connection
// for each order, a line of JSON each way.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// What the keeper does.
const (
	Ping   = "ping"   // nothing: it answers when the cluster is ready
	Start  = "start"  // a daemon, unless it runs as it is to
	Signal = "signal" // a daemon; after SIGKILL the answer comes when it is gone
	Stop   = "stop"   // the whole cluster, for good
)

// An Order asks the keeper to do something.
type Order struct {
	Do     string
	Host   string
	Daemon string
	Signal syscall.Signal
	Poor   bool // it is to start without Hadoop's native library
}

// An Answer says what came of it.
type Answer struct {
	Error string
	Pid   int // of the daemon, as the machine outside counts
}

const (
	maxLine = 4096
	longest = 2 * time.Minute // of any order
)

// Send gives the keeper behind a socket an order.
func Send(ctx context.Context, socket string, o Order) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return Answer{}, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var a Answer
	if err := errors.Join(json.NewEncoder(conn).Encode(o), decode(conn, &a)); err != nil {
		return Answer{}, fmt.Errorf("ask the keeper to %s: %w", o.Do, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// Serve answers one order.
func Serve(conn net.Conn, do func(Order) Answer) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(longest))
	var o Order
	if decode(conn, &o) != nil {
		return
	}
	json.NewEncoder(conn).Encode(do(o)) // the client may be gone
}

func decode(r io.Reader, v any) error {
	return json.NewDecoder(io.LimitReader(r, maxLine)).Decode(v)
}
