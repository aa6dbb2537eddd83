package hdfs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

// A guardian knows how connections to the datanodes of a cluster are guarded:
// by the configuration, or as the namenode says. What that said holds for a
// while.
type guardian struct {
	names   *namenode.Client
	encrypt bool   // the configuration says so
	least   string // protection

	turn chan struct{} // held by the one who asks the namenode

	mu struct {
		sync.Mutex
		told  datanode.Guard
		until time.Time
	}
}

// keepGuard is how long a cluster that is set up anew goes unnoticed at most.
// Hadoop's clients take as long.
const keepGuard = time.Hour

func newGuardian(names *namenode.Client, encrypt bool, least string) *guardian {
	return &guardian{names: names, encrypt: encrypt, least: least, turn: make(chan struct{}, 1)}
}

// guard implements datanode.Config's.
func (g *guardian) guard(ctx context.Context) (datanode.Guard, error) {
	if told, ok := g.known(); ok {
		return told, nil
	}
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return datanode.Guard{}, ctx.Err()
	}
	if told, ok := g.known(); ok {
		return told, nil
	}
	told, keep, err := g.ask(ctx)
	if err != nil {
		return told, fmt.Errorf("guard of datanodes: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.told, g.mu.until = told, time.Now().Add(keep)
	return told, nil
}

func (g *guardian) known() (datanode.Guard, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.told, time.Now().Before(g.mu.until)
}

// ask asks the namenode, and says how long its answer is good for. A key is
// used for three quarters of what it has left, if the clocks agree; if not, a
// datanode refuses it, and it is forgotten.
func (g *guardian) ask(ctx context.Context) (told datanode.Guard, keep time.Duration, err error) {
	defaults, err := g.names.Defaults(ctx)
	if err != nil {
		return told, 0, err
	}
	if !g.encrypt && !defaults.EncryptData {
		return datanode.Guard{Protection: g.least}, keepGuard, nil
	}
	key, until, err := g.names.EncryptionKey(ctx)
	if err != nil || key == nil {
		return datanode.Guard{Protection: "privacy"}, keepGuard, err
	}
	return datanode.Guard{Protection: "privacy", Key: key}, min(keepGuard, time.Until(until)*3/4), nil
}

// forget has the namenode asked again: it, or a datanode, may have been started
// anew and know the key no more.
func (g *guardian) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.until = time.Time{}
}

// leastProtection is the weakest of those that a configuration allows; with it
// goes whatever a datanode offers that is better.
func leastProtection(allowed []string) (string, error) {
	ranks := []string{"authentication", "integrity", "privacy"}
	least := len(ranks)
	for _, p := range allowed {
		rank := slices.Index(ranks, strings.ToLower(p))
		if rank < 0 {
			return "", fmt.Errorf("dfs.data.transfer.protection %q %w: give authentication, integrity or privacy", p, meta.ErrInvalid)
		}
		least = min(least, rank)
	}
	if len(allowed) == 0 {
		return "", nil
	}
	return ranks[least], nil
}
