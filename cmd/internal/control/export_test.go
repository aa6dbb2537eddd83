package control

import (
	"context"
	"log/slog"
	"net"
	"time"
)

// ServeImpatient is Serve with every timeout set to d.
func ServeImpatient(ctx context.Context, l net.Listener, n Node, d time.Duration) error {
	return serve(ctx, l, n, slog.New(slog.DiscardHandler), timeouts{request: d, write: d, idle: d, drain: d})
}

// SetAnswer sets how long a client waits for an answer to begin.
func (c *Client) SetAnswer(d time.Duration) { c.answer = d }

// SetChange sets how long a client waits for a change of the cluster.
func (c *Client) SetChange(d time.Duration) { c.change = d }

// Limit returns l with at most n connections at a time.
func Limit(l net.Listener, n int) net.Listener { return newLimited(l, n) }

// The bounds of the socket.
const (
	MaxConns = maxConns
	MaxBody  = maxBody
)
