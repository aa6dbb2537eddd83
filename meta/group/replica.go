package group

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// A replica is this node's part in Raft: its log on disk, what of it is agreed on, and
// the machine that executes that.
//
// Nothing enters the log but by write, which bounds how much of it waits, and by reconfigure,
// which changes Raft's configuration. Raft locks for itself; no lock of this package is
// held when it is called, except that the ballot is while voters change.
type replica struct {
	config  *Config
	links   *links
	store   *store
	senders *senders
	fsm     *fsm
	configuration
	endRaft    func() raft.Future // the same each time
	transport  *transport
	leadership leadership
	writes     chan struct{}  // one for each command that Raft has not answered
	current    atomic.Uint64  // the term in which this node was up to date once, as the leader
	written    sync.WaitGroup // goroutines that wait for those
}

// maxWrites bounds the commands that this node has put into its log and that are not
// executed yet, even if no caller waits for them any more.
const maxWrites = 1024

// trailing is how many commands the log keeps beside a snapshot. A follower that has
// missed more is sent the snapshot instead. They are 4 MB and 0.1 s to execute (7 us
// each), where a snapshot of 20 MB takes 4 s to write and to read; and while that
// goes on, a thousand queue workers of one batch a second make 4,000 more, so that a
// follower with a new snapshot still finds the commands that follow it.
const trailing = 16384

// startReplica runs Raft on a store, of which it becomes the owner if there is no error.
func startReplica(c *Config, s *store, l *links, from *senders, bootstrap bool) (*replica, error) {
	r := &replica{config: c, links: l, store: s, senders: from, writes: make(chan struct{}, maxWrites)}
	r.leadership.begin()
	self := raftAddress(c.Self.ID, c.Self.Addr)
	network := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: stream{c.Port.Listener(trust.Raft), self, r.dial, from.admit}, MaxPool: 3, Timeout: c.times.message, Logger: hclogger(c.Log),
		// No pipelines: one whose follower knows of a newer term is left with a
		// send that no goroutine receives, and Raft waits for it when it shuts down.
		MaxRPCsInFlight: 1,
	})
	r.transport = newTransport(network, s.logEnds, func(id raft.ServerID) bool { return r.servers()[string(id)].ID != "" })
	conf := raftConfig(c)
	r.fsm = newFSM(c.Machine, s.agreed, s.logEnds, s.log.sync)
	var err error
	if bootstrap {
		only := raft.Configuration{Servers: []raft.Server{{ID: conf.LocalID, Address: self}}}
		err = raft.BootstrapCluster(conf, s.log, s.log, s.snapshots, r.transport, only)
	}
	if err == nil {
		r.configuration.patience = c.times.patience
		r.raft, err = raft.NewRaft(conf, r.fsm, s.log, s.log, s.snapshots, r.transport)
		if err != nil {
			err = r.fsm.explain(err)
		}
	}
	if err != nil {
		from.end()
		return nil, errors.Join(fmt.Errorf("start raft: %w", err), network.Close())
	}
	from.begin(&r.configuration)
	r.endRaft = sync.OnceValue(r.raft.Shutdown)
	alone := func() bool { return r.alone(c.Self.ID) }
	s.log.alone.Store(&alone)
	if err := r.fsm.recall(s.log); err != nil {
		c.Log.Warn("what was agreed on before is not all known: the others will say", "cause", err)
	}
	return r, r.hurry()
}

func raftConfig(c *Config) *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = raft.ServerID(c.Self.ID), hclogger(c.Log)
	patient := c.times.heartbeat + time.Millisecond
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = patient, patient, c.times.heartbeat/2
	conf.SnapshotThreshold, conf.TrailingLogs = 4096, trailing
	conf.CommitTimeout = untold
	conf.ShutdownOnRemove = false
	return conf
}

// dial connects Raft to another node, for as long as that is not known to hear nothing.
func (r *replica) dial(ctx context.Context, addr, id string) (net.Conn, error) {
	return r.transport.hang(ctx, raft.ServerID(id), func(ctx context.Context) (net.Conn, error) {
		return r.links.dialAt(ctx, addr, id, trust.Raft)
	})
}

// hurry has a node elect itself at once where no other could be elected: Raft wakes
// up when its patience is shortened, and finds that it has heard of no leader.
func (r *replica) hurry() error {
	if len(r.servers()) > 1 {
		return nil
	}
	return r.standAfter(r.config.times.heartbeat)
}

// standAfter says how long this node does without a leader before it stands for
// election.
func (r *replica) standAfter(patience time.Duration) error {
	c := r.raft.ReloadableConfig()
	c.HeartbeatTimeout, c.ElectionTimeout = patience, patience
	return r.raft.ReloadConfig(c)
}

// abstain lets others stand first while the log of this node cannot be written.
// A leader writes at once, and where that fails, perhaps after a few entries, it leads no
// more: this node could be elected again and again, and the cluster write nothing.
func (r *replica) abstain(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.store.log.changed:
		}
		patience := r.config.times.heartbeat
		if r.store.log.failing.Load() {
			patience *= 4
		}
		if err := r.standAfter(patience); err != nil {
			r.config.Log.Error("raft not configured", "cause", err)
		}
	}
}

// Leads reports whether this node leads the cluster, as far as it knows.
func (r *replica) Leads() bool { return r.raft.State() == raft.Leader }

// Leading is Leads, with the term in which that is.
func (r *replica) Leading() (term uint64, leads bool) { return r.raft.CurrentTerm(), r.Leads() }

// Leader is the node that leads, empty if none is known.
func (r *replica) Leader() string {
	_, id := r.raft.LeaderWithID()
	return string(id)
}

// giveAway transfers the lead to another node.
func (r *replica) giveAway(ctx context.Context) error {
	return r.ask(ctx, func() raft.Future { return r.raft.LeadershipTransfer() })
}

// reconfigure changes Raft's configuration.
func (r *replica) reconfigure(ctx context.Context, c change, n state.Node) error {
	return r.ask(ctx, func() raft.Future { return r.configuration.begin(c, n) })
}

// observe has one leadership follow the other, until ctx is done.
func (r *replica) observe(ctx context.Context) {
	changes := make(chan raft.Observation, 1) // one that waits stands for those that come
	o := raft.NewObserver(changes, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	r.raft.RegisterObserver(o)
	defer r.raft.DeregisterObserver(o)
	for {
		select {
		case <-changes:
			r.leadership.begin()
			r.transport.giveUp()
		case <-ctx.Done():
			return
		}
	}
}

// write has Raft do something that goes through the log. Where followers answer but
// cannot write, their disks full, Raft waits for ever; the caller does not.
func (r *replica) write(ctx context.Context, begin func() raft.Future) (raft.Future, error) {
	if err := r.reserve(); err != nil {
		return nil, err
	}
	future := begin()
	written := make(chan error, 1)
	r.written.Go(func() { // until Raft is shut down at the latest
		written <- future.Error()
		<-r.writes
	})
	select {
	case err := <-written:
		return future, leaderless(err)
	case <-ctx.Done():
		return nil, meta.Worded(meta.ErrUnavailable, "write to the cluster's log: no majority of the voters has written it: %w", ctx.Err())
	}
}

// verify asks a majority whether this node leads still.
func (r *replica) verify(ctx context.Context) error {
	for begun := time.Now(); ; {
		if err := r.askMajority(ctx); err != nil || r.ledSince(begun) {
			return err
		}
	}
}

// ledSince reports whether a majority has taken this node for the leader by what it was sent
// since then: that holds of a term in which all of that was.
func (r *replica) ledSince(then time.Time) bool {
	voters := r.voters()
	led := 0
	for _, id := range voters {
		if id == r.config.Self.ID || r.transport.ledSince(raft.ServerID(id), then) {
			led++
		}
	}
	return led > len(voters)/2
}

// askMajority has Raft ask for that. Raft takes whatever a voter answers next for its answer,
// whenever that was sent.
func (r *replica) askMajority(ctx context.Context) error {
	err := r.ask(ctx, func() raft.Future { return r.raft.VerifyLeader() })
	if err != nil && ctx.Err() != nil {
		return meta.Worded(meta.ErrUnavailable, "ask whether this node leads: no majority of the voters has answered: %w", ctx.Err())
	}
	return leaderless(err)
}

// ask has Raft answer something. Raft never answers what it is asked just before it shuts
// down, or after; so nothing waits for the goroutine that waits for it.
func (r *replica) ask(ctx context.Context, begin func() raft.Future) error {
	if err := r.reserve(); err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() {
		answered <- begin().Error()
		<-r.writes
	}()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reserve takes one of the places for what Raft is to answer.
func (r *replica) reserve() error {
	select {
	case r.writes <- struct{}{}:
		return nil
	default:
		return fmt.Errorf("the leader %w: %d commands wait to be written; are disks full? see: rankfs node ls", meta.ErrUnavailable, maxWrites)
	}
}

// confirm writes that this node leads, which it does if a majority writes it too; then
// this node has executed all that was agreed on when confirm was called.
func (r *replica) confirm(ctx context.Context) error {
	_, err := r.write(ctx, func() raft.Future { return r.raft.Barrier(r.config.times.patience) })
	return err
}

// upToDate makes sure that this node, which leads, has executed every command that a caller
// was told is agreed on: those that leaders before it have written, once in each term. And
// that no other leads by now, which a majority says without a write. Its own commands are
// answered once they are executed here.
func (r *replica) upToDate(ctx context.Context) error {
	term := r.raft.CurrentTerm()
	if r.current.Load() == term {
		if r.alone(r.config.Self.ID) && r.Leads() && r.raft.CurrentTerm() == term {
			return nil // no other voter could lead
		}
		err := r.verify(ctx)
		if err != nil || r.raft.CurrentTerm() == term {
			return err
		}
		term = r.raft.CurrentTerm()
	}
	err := r.confirm(ctx)
	if err == nil {
		r.current.Store(term)
	}
	return err
}

// lastAgreed is the last command that is agreed on. This node, which leads, may have to
// execute it yet where a node that it has told of it has done so.
func (r *replica) lastAgreed() (uint64, error) {
	for index := r.raft.CommitIndex(); ; index-- {
		if applied := r.config.Machine.Summary().Applied; index <= applied {
			return applied, nil
		}
		var l raft.Log
		err := r.store.log.GetLog(index, &l)
		if errors.Is(err, raft.ErrLogNotFound) {
			continue // a snapshot has what was executed up to it
		}
		if err != nil || l.Type == raft.LogCommand {
			return index, err
		}
	}
}

// leaderless makes what Raft says when it cannot now into an error that wraps
// meta.ErrUnavailable.
func leaderless(err error) error {
	if err == nil {
		return nil
	}
	for _, passing := range []error{
		raft.ErrNotLeader, raft.ErrLeadershipLost, raft.ErrLeadershipTransferInProgress,
		raft.ErrEnqueueTimeout, raft.ErrAbortedByRestore, raft.ErrRaftShutdown,
	} {
		if errors.Is(err, passing) {
			return fmt.Errorf("%w (%w)", errNoLeader, err)
		}
	}
	return fmt.Errorf("write to the cluster's log: %w (%w)", err, meta.ErrUnavailable)
}

// close ends this node's part, until it is started again. What it knows is on disk.
func (r *replica) close() error {
	r.transport.end()
	r.senders.end()
	if r.config.Machine.Summary().Applied > 0 {
		_ = r.raft.Snapshot().Error() // so that a node that is alone when it wakes up knows more; there may be nothing new
	}
	err := r.endRaft().Error()
	r.written.Wait()
	r.leadership.end()
	return errors.Join(err, r.store.close())
}
