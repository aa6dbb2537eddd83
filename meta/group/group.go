package group

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"sync"

	"rankfs/meta/trust"
)

// A Group is this node's membership of its cluster. Its methods may be called
// concurrently; those of embedded parts are its own.
//
// It wires the parts, and does nothing else. A part calls those that stand above it in
// wire, and nothing calls back. What a part changes, and under which lock, is said where
// its type begins. No lock of a part is held while another part is called; but the
// ballot is, over writes to the log and while a node is given the authority's key.
type Group struct {
	config       *Config
	*standing    // what this node has learnt of its place
	*links       // connections to other nodes
	*calls       // requests to other nodes
	*replica     // this node's part in Raft
	*leaderCalls // requests to the leader
	*progress    // how far this node is
	*commands    // what the cluster is to execute
	*tokens      // that let nodes in
	*membership  // which nodes vote
	duties       *duties
	renewal      *renewal
	beginning    *beginning
	removal      *removal
	applications *applicationListener
	cancel       context.CancelFunc
	tasks        sync.WaitGroup
}

// Open enters the cluster that Join or an earlier Open made this node part of.
// A node that is part of none founds one if founds is set.
func Open(ctx context.Context, c Config, founds bool) (*Group, error) {
	c.medium = onDisk()
	return open(ctx, c, founds, defaultTimes())
}

func open(ctx context.Context, config Config, founds bool, t times) (*Group, error) {
	if config.Self.Life == 0 {
		config.Self.Life = rand.Uint64() | 1
	}
	config.times = t
	g := &Group{config: &config}
	founds, err := g.wire(ctx, founds)
	if err != nil {
		return nil, err
	}
	if err := g.start(ctx, founds); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// wire makes the parts, none of which does anything yet but Raft. It reports whether the
// node is to found a cluster.
func (g *Group) wire(ctx context.Context, mayFound bool) (founds bool, err error) {
	c := g.config
	known, err := openKnown(c.Known)
	if err != nil {
		return false, err
	}
	g.standing = newStanding(c)
	directory := &directory{c, known}
	g.links = &links{c, directory, g.standing}
	g.calls = newCalls(c.Self.ID, func(ctx context.Context, id string) (net.Conn, error) { return g.Dial(ctx, id, trust.Call) }, c.Log)
	prober := &prober{c, g.calls}
	greeter := &greeter{c, directory, g.standing, g.calls}
	certificate := &certificate{c, directory, g.standing}

	recovery := &recovery{c, directory, greeter, certificate}
	store, err := recovery.openStore(ctx, mayFound)
	if err != nil {
		return false, errors.Join(err, g.calls.close())
	}
	began, err := store.began()
	founds = mayFound && !began
	if err == nil {
		g.replica, err = startReplica(c, store, g.links, newSenders(c, prober, directory), founds)
	}
	if err != nil {
		return false, errors.Join(err, store.close(), g.calls.close())
	}

	seen, ballot, warnings := &liveness{dead: c.times.dead, max: c.times.look}, make(ballot, 1), newWarnings(c.Log)
	g.leaderCalls = &leaderCalls{c, g.standing, g.calls, g.replica}
	g.progress = newProgress(c, g.replica, g.leaderCalls)
	executor := &executor{c, g.replica, prober, ballot}
	g.commands = &commands{c, g.standing, seen, g.calls, g.replica, g.leaderCalls, executor}
	g.tokens = &tokens{c, g.progress, g.commands}
	admission := &admission{c, seen, g.leaderCalls, executor}
	g.applications = &applicationListener{config: c, admission: admission, listener: c.Port.Listener(trust.Join)}
	g.renewal = &renewal{c, g.standing, certificate, admission}
	arrivals := &arrivals{c, seen, g.replica, executor}
	g.beginning = &beginning{c, g.standing, g.replica, greeter, arrivals}
	keys := &keys{config: c, seen: seen, calls: g.calls, replica: g.replica, warnings: warnings}
	g.removal = &removal{c, g.standing, g.replica, keys}
	health := &health{c, seen, prober, executor}
	clocks := &clocks{c, seen, g.replica, warnings}
	upgrade := &upgrade{c, seen, executor, warnings}
	g.membership = &membership{c, seen, g.replica, g.leaderCalls, ballot, keys, warnings}
	g.duties = &duties{c, seen, g.replica, health, clocks, upgrade, g.membership, keys}
	return founds, nil
}

// start has the parts begin.
func (g *Group) start(ctx context.Context, founds bool) (err error) {
	run, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.calls.serve(g.config.Port.Listener(trust.Call), g.handlers())
	g.applications.done.Go(g.applications.serve)
	g.tasks.Go(func() { g.replica.observe(run) })
	g.tasks.Go(func() { g.duties.run(run) })
	g.tasks.Go(func() { g.replica.abstain(run) })
	g.tasks.Go(func() { g.renewal.run(run) })
	if founds {
		err = g.commands.found(ctx)
	}
	g.tasks.Go(func() { g.beginning.run(run) })
	g.tasks.Go(func() { g.removal.await(run) })
	g.tasks.Go(func() { revocation{g.config}.run(run) })
	g.tasks.Go(func() { g.links.directory.remember(run, g.replica.voters) })
	return err
}

// handlers answer the calls of other nodes: those of this package, and of the packages
// above.
func (g *Group) handlers() map[string]Handler {
	keys, arrivals := g.membership.keys, g.beginning.arrivals
	all := map[string]Handler{
		callApply:     g.commands.serveApply,
		callAdmit:     g.applications.admission.serveAdmit,
		callHello:     arrivals.serveHello,
		callEntrust:   keys.serveEntrust,
		callKey:       keys.serveKey,
		callForget:    keys.serveForget,
		callNow:       g.progress.serveNow,
		callHeartbeat: g.progress.serveHeartbeat,
		callVotes:     g.membership.serveVotes,
	}
	maps.Copy(all, g.config.Handlers)
	return all
}

// Self is this node's id.
func (g *Group) Self() string { return g.config.Self.ID }

// Close leaves, until this node is started again. What it knows is on disk.
func (g *Group) Close() error {
	g.cancel()
	g.replica.store.log.giveUp() // or what asks Raft something would wait for a disk
	g.tasks.Wait()
	g.progress.close()
	return errors.Join(g.applications.close(), g.calls.close(), g.replica.close())
}
