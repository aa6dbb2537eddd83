package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// Config is what a member needs. All of it but Handlers and Log is open and
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
}

// A Port is where a node meets the others: a *trust.Port.
type Port interface {
	// Listener accepts the connections of other nodes; trust.PeerID is the node of each.
	Listener(p trust.Protocol) net.Listener
	// Dial connects to the node of that id at an address.
	Dial(ctx context.Context, addr, id string, p trust.Protocol) (net.Conn, error)
}

// times are the intervals and limits of a group; tests shorten them.
type times struct {
	patience  time.Duration // for one command, an election and all
	pause     time.Duration // between attempts
	follow    time.Duration // between looks whether this node has caught up
	heartbeat time.Duration // of a leader, that its followers await
	tick      time.Duration // between the rounds of a leader
	look      time.Duration // for one round of calls that find which nodes are up
	dead      time.Duration // without an answer
	renew     time.Duration // between looks at this node's certificate
}

func defaultTimes() times {
	return times{
		patience: 10 * time.Second, pause: 50 * time.Millisecond, follow: time.Millisecond,
		heartbeat: time.Second,
		tick:      500 * time.Millisecond, look: 2 * time.Second, dead: 5 * time.Second, renew: time.Minute,
	}
}

// A Group is this node's membership of its cluster. Its methods may be called
// concurrently.
type Group struct {
	config  Config
	times   times
	store   *store
	raft    *raft.Raft
	endRaft func() raft.Future // the same each time
	courier *courier
	calls   *calls
	office  *office
	known   *acquaintances
	home    home
	seen    sightings
	reign   reign
	writes  chan struct{}         // one for each that Raft has not answered
	written sync.WaitGroup        // goroutines that wait for those
	vault   chan struct{}         // held while the authority's key changes
	ballot  chan struct{}         // held while the set of voters changes, or a voter leaves
	waits   atomic.Pointer[error] // why the cluster does not take commands of this release, if this node leads
	said    map[string]string     // of what this node, leading, could not do
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// The calls of this package.
const (
	callApply   = "/apply"
	callPulse   = "/pulse"
	callHello   = "/hello"
	callNow     = "/now"
	callEntrust = "/entrust"
	callKey     = "/key"
	callForget  = "/forget"
	callAdmit   = "/admit"
	callSettled = "/settled"
)

// Open enters the cluster that Join or an earlier Open made this node part of.
// A node that is part of none founds one if founds is set.
func Open(ctx context.Context, c Config, founds bool) (*Group, error) {
	c.medium = onDisk()
	return open(ctx, c, founds, defaultTimes())
}

func open(ctx context.Context, c Config, founds bool, t times) (g *Group, err error) {
	if c.Self.Life == 0 {
		c.Self.Life = rand.Uint64() | 1
	}
	g = &Group{
		config: c, times: t, writes: make(chan struct{}, maxWrites), vault: make(chan struct{}, 1),
		ballot: make(chan struct{}, 1), said: make(map[string]string),
		home: home{begun: make(chan struct{}), removed: make(chan struct{}), behind: make(chan struct{})},
	}
	if g.known, err = openKnown(c.Known); err != nil {
		return nil, err
	}
	g.reign.begin()
	g.calls = newCalls(g.dialCall, c.Log)
	if g.store, err = g.openStore(ctx, founds); err != nil {
		return nil, errors.Join(err, g.calls.close())
	}
	began, err := g.store.began()
	if err == nil {
		err = g.start(founds && !began)
	}
	if err != nil {
		return nil, errors.Join(err, g.store.close(), g.calls.close())
	}
	run, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.calls.serve(c.Port.Listener(trust.Call), g.handlers())
	g.office = newOffice(c.Port.Listener(trust.Join), g)
	g.done.Go(func() { g.observe(run) })
	g.done.Go(func() { g.lead(run) })
	g.done.Go(func() { g.abstain(run) })
	g.done.Go(func() { g.renew(run) })
	if founds && !began {
		err = g.found(ctx)
	}
	g.done.Go(func() { g.callHome(run) })
	g.done.Go(func() { g.awaitRemoval(run) })
	g.done.Go(func() { g.remember(run) })
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// trailing is how many commands the log keeps beside a snapshot. A follower that has
// missed more is sent the snapshot instead. They are 4 MB and 0.1 s to execute (7 us
// each), where a snapshot of 20 MB takes 4 s to write and to read; and while that
// goes on, a thousand queue workers of one batch a second make 4,000 more, so that a
// follower with a new snapshot still finds the commands that follow it.
const trailing = 16384

// start runs Raft.
func (g *Group) start(bootstrap bool) error {
	c, self := g.config, raftAddress(g.config.Self.ID, g.config.Self.Addr)
	network := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: stream{c.Port.Listener(trust.Raft), self, g.dialRaft}, MaxPool: 3, Timeout: g.times.patience, Logger: hclogger(c.Log),
		// No pipelines: one whose follower knows of a newer term is left with a
		// send that no goroutine receives, and Raft waits for it when it shuts down.
		MaxRPCsInFlight: 1,
	})
	g.courier = newCourier(network, func(id raft.ServerID) bool { return g.servers()[string(id)].ID != "" })
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = raft.ServerID(c.Self.ID), hclogger(c.Log)
	patient := g.times.heartbeat + time.Millisecond
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = patient, patient, g.times.heartbeat/2
	conf.SnapshotThreshold, conf.TrailingLogs = 4096, trailing
	conf.ShutdownOnRemove = false
	replica := newFSM(c.Machine, g.store.agreed)
	var err error
	if bootstrap {
		only := raft.Configuration{Servers: []raft.Server{{ID: conf.LocalID, Address: self}}}
		err = raft.BootstrapCluster(conf, g.store.log, g.store.log, g.store.snapshots, g.courier, only)
	}
	if err == nil {
		g.raft, err = raft.NewRaft(conf, replica, g.store.log, g.store.log, g.store.snapshots, g.courier)
		if err != nil {
			err = replica.explain(err)
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start raft: %w", err), network.Close())
	}
	g.endRaft = sync.OnceValue(g.raft.Shutdown)
	if err := replica.recall(g.store.log); err != nil {
		c.Log.Warn("what was agreed on before is not all known: the others will say", "cause", err)
	}
	return g.hurry()
}

// hurry has a node elect itself at once where no other could be elected: Raft wakes
// up when its patience is shortened, and finds that it has heard of no leader.
func (g *Group) hurry() error {
	if len(g.servers()) > 1 {
		return nil
	}
	return g.standAfter(g.times.heartbeat)
}

// standAfter says how long this node does without a leader before it stands for
// election.
func (g *Group) standAfter(patience time.Duration) error {
	c := g.raft.ReloadableConfig()
	c.HeartbeatTimeout, c.ElectionTimeout = patience, patience
	return g.raft.ReloadConfig(c)
}

// abstain lets others stand first while the log of this node cannot be written.
// A leader writes at once, and where that fails, perhaps after a few entries, it leads no
// more: this node could be elected again and again, and the cluster write nothing.
func (g *Group) abstain(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.store.log.turned:
		}
		patience := g.times.heartbeat
		if g.store.log.failing.Load() {
			patience *= 4
		}
		if err := g.standAfter(patience); err != nil {
			g.config.Log.Error("raft not configured", "cause", err)
		}
	}
}
