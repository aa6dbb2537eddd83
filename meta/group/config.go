package group

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"time"

	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// Config configures a member. All of it but Handlers and Log is open and
// stays open until the group is closed.
type Config struct {
	Dir       string     // of the log and the snapshots
	Known     string     // file, outside of Dir, of where other nodes are
	Self      state.Node // with a number for this life of the daemon, or none: then one is drawn
	Machine   *state.Machine
	Port      Port
	Authority *trust.Authority
	Identity  *trust.Identity
	Handlers  map[string]Handler // of the packages above, by path: "/queue"
	Now       func() time.Time   // wall clock
	Log       *slog.Logger

	medium medium // of the log
	times  times
}

// A Handler answers a call of another node, whose id is authenticated. It may be called
// concurrently.
type Handler func(ctx context.Context, from string, request json.RawMessage) (any, error)

// A Port is where a node meets the others: a *trust.Port.
type Port interface {
	// Listener accepts the connections of other nodes; trust.PeerID is the node of each.
	Listener(p trust.Protocol) net.Listener
	// Dial connects to the node of that id at an address.
	Dial(ctx context.Context, addr, id string, p trust.Protocol) (net.Conn, error)
	// Revoke ends all connections with a node, of which this one has some number.
	Revoke(node string) int
}

// times are the intervals and limits of a group; tests shorten them.
type times struct {
	patience  time.Duration // for one command, an election and all
	message   time.Duration // for one of Raft's, to be sent and answered
	pause     time.Duration // between attempts
	heartbeat time.Duration // of a leader, that its followers await
	tick      time.Duration // between the rounds of a leader
	look      time.Duration // for one round of calls that find which nodes are up
	dead      time.Duration // of rounds without an answer
	renew     time.Duration // between looks at this node's certificate
}

func defaultTimes() times {
	return times{
		patience: 10 * time.Second, message: 10 * time.Second, pause: 50 * time.Millisecond,
		heartbeat: time.Second,
		tick:      500 * time.Millisecond, look: 2 * time.Second, dead: 5 * time.Second, renew: time.Minute,
	}
}

// self is this node as the sender of what is asked of it.
func (c *Config) self() state.Sender { return state.Sender{Node: c.Self.ID} }

// itself is this node as the leader, which does what is the leader's to do.
func (c *Config) itself() state.Sender { return state.Sender{Node: c.Self.ID, Leads: true} }

// ids are the nodes of the cluster.
func (c *Config) ids() (ids []string) {
	for _, n := range c.Machine.Nodes() {
		ids = append(ids, n.ID)
	}
	return ids
}
