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

// A guardian knows how connections to the datanodes of a cluster are guarded: by the
// configuration, or as the namenode says. It reuses the namenode's answer for a while. The lock
// guards the answer, and is not held while the namenode is asked.
type guardian struct {
	names   *namenode.Client
	encrypt bool     // the configuration says so
	allowed []string // protections, best first

	asking chan struct{} // holds a token: one caller at a time asks the namenode

	mu struct {
		sync.Mutex
		told  datanode.Guard
		until time.Time
	}
}

// keepGuard bounds the time for which a cluster that is set up anew goes unnoticed.
// Hadoop's clients take as long.
const keepGuard = time.Hour

func newGuardian(names *namenode.Client, encrypt bool, allowed []string) *guardian {
	return &guardian{names: names, encrypt: encrypt, allowed: allowed, asking: make(chan struct{}, 1)}
}

// guard implements datanode.Config's.
func (g *guardian) guard(ctx context.Context) (datanode.Guard, error) {
	if told, ok := g.known(); ok {
		return told, nil
	}
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
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

// ask asks the namenode, and returns how long to keep its answer. A key is used for
// three quarters of its remaining time, if the clocks agree. If they do not, a
// datanode refuses the key, and it is forgotten.
func (g *guardian) ask(ctx context.Context) (told datanode.Guard, keep time.Duration, err error) {
	encrypts, err := g.names.EncryptsData(ctx)
	if err != nil {
		return told, 0, err
	}
	if !g.encrypt && !encrypts {
		return datanode.Guard{Allowed: g.allowed}, keepGuard, nil
	}
	key, until, err := g.names.EncryptionKey(ctx)
	if err != nil || key == nil {
		return datanode.Guard{Allowed: privacy}, keepGuard, err
	}
	return datanode.Guard{Allowed: privacy, Key: key}, min(keepGuard, time.Until(until)*3/4), nil
}

// forget has the namenode asked again: it, or a datanode, may have been started
// anew and know the key no more.
func (g *guardian) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.until = time.Time{}
}

var privacy = []string{"privacy"}

// protections returns the protections that a configuration allows, in its order, best
// first.
func protections(names []string) (allowed []string, err error) {
	for _, name := range names {
		p := strings.ToLower(name)
		if !slices.Contains([]string{"authentication", "integrity", "privacy"}, p) {
			return nil, fmt.Errorf("dfs.data.transfer.protection %q %w: give authentication, integrity or privacy", name, meta.ErrInvalid)
		}
		allowed = append(allowed, p)
	}
	return allowed, nil
}
