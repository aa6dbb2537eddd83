package control

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"time"
)

// ServeImpatient is Serve with every timeout set to d.
func ServeImpatient(ctx context.Context, l net.Listener, n Node, d time.Duration) error {
	return serve(ctx, l, n, Admin{}, slog.New(slog.DiscardHandler), timeouts{request: d, write: d, idle: d, drain: d})
}

// SetAnswer sets how long a client waits for an answer to begin.
func (c *Client) SetAnswer(d time.Duration) { c.answer = d }

// SetChange sets how long a client waits for a change of the cluster.
func (c *Client) SetChange(d time.Duration) { c.change = d }

// Limit returns l with at most n connections of admins at a time, and two of others.
func Limit(l net.Listener, n int, admin func(net.Conn) bool) net.Listener {
	return newLimited(l, n, 2, admin)
}

// The bounds of the socket.
const (
	MaxConns = maxConns
	MaxBody  = maxBody
)

// Routes are the names of the calls that a server answers.
func Routes() []string { return slices.Sorted(maps.Keys(routesOf(nil))) }

// Refusable are what each of those does that not all users may make, as a refusal says it;
// what all may make does nothing that it would have to say.
func Refusable() (acts map[string]string, others []string) {
	acts = make(map[string]string)
	for name, r := range routesOf(nil) {
		if r.right == allUsers {
			others = append(others, r.act)
			continue
		}
		acts[name] = r.act
	}
	return acts, others
}
