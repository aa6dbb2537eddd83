package turns

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"rankfs/meta/wire"
)

// maxExchanges bounds the exchanges with a node at a time, each way: as many as
// there are connections, so that an exchange waits here, where jobs have their shares.
const maxExchanges = wire.Connections

// Exchanges are the exchanges to other nodes, in one direction. The lock guards the table.
type Exchanges struct {
	mu sync.Mutex
	to map[string]*Shares
}

// NewExchanges are none with any node yet.
func NewExchanges() *Exchanges { return &Exchanges{to: make(map[string]*Shares)} }

// stuckTime is how long none of the exchanges with a node may end while another waits. Then
// that one is given up: another node may be sooner.
const stuckTime = 5 * time.Second

// InTurn does an exchange with a node when it is the turn of that job.
func (e *Exchanges) InTurn(ctx context.Context, node string, by Party, q wire.Request, exchange func() error) error {
	ticks := time.NewTicker(cmp.Or(q.Quiet, stuckTime))
	defer ticks.Stop()
	give, err := e.of(node).takeSoon(ctx, by, 1, int64(q.Bytes), ticks.C)
	if err != nil {
		return fmt.Errorf("node %s, with which others exchange something: %w", node, err)
	}
	defer give()
	return exchange()
}

func (e *Exchanges) of(node string) *Shares {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.to[node] == nil {
		e.to[node] = New(maxExchanges)
	}
	return e.to[node]
}
