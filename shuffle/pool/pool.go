package pool

import (
	"context"
	"io"
	"time"

	"rankfs/meta/wire"
	"rankfs/shuffle/gathering"
	"rankfs/shuffle/groupcommit"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/report"
	"rankfs/shuffle/turns"
	"rankfs/shuffle/uses"
)

// A Maker makes files of parts, which may be given up and made again.
type Maker interface {
	Open(ctx context.Context, p *Part) (File, error)
}

// A File is a file whose bytes never change, open until Release.
type File interface {
	io.ReaderAt
	Fd() int
	Release()
}

// A Pool is this node's part of the shuffle pool. Its methods may be called concurrently.
// What it does is done by types of one job each, which have their own locks. Of two the one
// that is taken first is: local.making before its mu, the budget's dividing before its mu
// and those of shares. Others are held alone.
type Pool struct {
	*agreed
	maker   Maker
	local   *local
	budget  *memory.Budget
	copies  *copies
	peers   peers
	spill   *spill
	uses    *uses.Uses
	tails   tails
	commits *groupcommit.Queue
	columns *columns
	tallies *tallies
	born    time.Time

	waits    report.Waits
	refusals report.Refusals
}

// New makes a pool. Start begins what it does without being asked.
func New(c Config) *Pool {
	if c.Forget == nil {
		c.Forget = func() {}
	}
	p := &Pool{agreed: &agreed{c}, budget: memory.New(c.RAM, c.Used, c.Log), born: time.Now()}
	p.local = newLocal(p.agreed, p.budget)
	p.copies, p.peers = &copies{local: p.local, losses: newLosses(p.agreed)}, newPeers(p.agreed)
	p.columns = &columns{gathering.New(clusterAsked{p.agreed}), p.copies, p.peers, merging.New(c.RAM, p.local.work)}
	p.spill = &spill{copies: p.copies, moving: make(chan struct{}, 1)}
	p.tallies = &tallies{agreed: p.agreed, refusals: &p.refusals}
	p.uses = uses.New(c.State, c.Cluster, agreeTime, c.Log)
	p.tails.peers = p.peers
	p.commits = groupcommit.New(c.Cluster, agreeTime)
	return p
}

// Start takes what makes files of parts, and adopts what an earlier daemon left.
func (p *Pool) Start(_ context.Context, m Maker) error {
	p.maker = m
	return p.local.open()
}

// Close gives back what the daemon has open. The files stay.
func (p *Pool) Close() error {
	p.tails.stopAll()
	p.commits.Close()
	return p.local.close()
}

// Calls answers other nodes.
func (p *Pool) Calls() (wire.Calls, wire.Pushes) {
	return server{p.copies, turns.NewRepairs(), p.peers.packing}.calls()
}
