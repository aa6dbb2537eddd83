package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/durable"
)

// Acquaintances are other nodes and where they are, in a file beside the log: for
// when that, and the state, cannot be read.
type acquaintances struct {
	path string
	mu   struct {
		sync.Mutex
		all []acquaintance
	}
}

type acquaintance struct {
	ID   string `json:"id"`
	Addr string `json:"addr"`
}

// The bounds of what is noted: all voters, and some more.
const (
	maxKnown      = 16
	maxKnownBytes = 16 << 10
)

// openKnown reads a file of acquaintances. One that cannot be parsed has none.
func openKnown(path string) (*acquaintances, error) {
	k := &acquaintances{path: path}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the list of other nodes: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKnownBytes))
	if err != nil {
		return nil, fmt.Errorf("read the list of other nodes: %w", err)
	}
	k.mu.all = parseKnown(text)
	return k, nil
}

func parseKnown(text []byte) (all []acquaintance) {
	if json.Unmarshal(text, &all) != nil {
		return nil
	}
	all = slices.DeleteFunc(all, func(a acquaintance) bool {
		return len(a.ID) != 16 || a.Addr == "" || len(a.Addr) > 256
	})
	return all[:min(len(all), maxKnown)]
}

// list returns a copy of the acquaintances.
func (k *acquaintances) list() []acquaintance {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.mu.all)
}

// meet notes where a node is until the next keep.
func (k *acquaintances) meet(a acquaintance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.all = append(slices.DeleteFunc(k.mu.all, func(o acquaintance) bool { return o.ID == a.ID }), a)
}

// keep writes the first maxKnown of all to the file, unless it has them already.
func (k *acquaintances) keep(all []acquaintance) error {
	all = all[:min(len(all), maxKnown)]
	if slices.Equal(all, k.list()) {
		return nil
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = durable.WriteFile(k.path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note the other nodes: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.all = all
	return nil
}

// remember keeps the list of other nodes as it should be.
func (g *Group) remember(ctx context.Context) {
	said := ""
	for {
		changed := g.config.Machine.Changed()
		if err := g.acquaint(); err != nil && err.Error() != said {
			said = err.Error()
			g.config.Log.Warn("not noted where the other nodes are", "cause", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(g.times.dead): // a change of voters does not change the machine
		}
	}
}

// acquaint brings the list of other nodes up to date: voters first, as one of them leads.
func (g *Group) acquaint() error {
	servers, nodes := g.servers(), g.config.Machine.Nodes()
	if len(nodes) == 0 {
		return nil // the machine is empty yet, and the old list is needed to fill it
	}
	voters, others := make(map[string]string), make(map[string]string)
	for _, n := range nodes {
		switch {
		case n.ID == g.config.Self.ID:
		case isVoter(servers[n.ID]):
			voters[n.ID] = n.Addr
		default:
			others[n.ID] = n.Addr
		}
	}
	var all []acquaintance
	for _, some := range []map[string]string{voters, others} {
		for _, id := range slices.Sorted(maps.Keys(some)) {
			all = append(all, acquaintance{id, some[id]})
		}
	}
	return g.known.keep(all)
}

// addresses are the known addresses of other nodes.
func (g *Group) addresses() (all []string) {
	for _, n := range g.config.Machine.Nodes() {
		if n.ID != g.config.Self.ID {
			all = append(all, n.Addr)
		}
	}
	for _, a := range g.known.list() {
		all = append(all, a.Addr)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// address is the address of a node, as far as this one knows.
func (g *Group) address(id string) (string, error) {
	if n, ok := g.config.Machine.Node(id); ok {
		return n.Addr, nil
	}
	for _, a := range g.known.list() {
		if a.ID == id {
			return a.Addr, nil
		}
	}
	return "", meta.Worded(meta.ErrNotExist, "node %s does not exist in this cluster", id)
}
