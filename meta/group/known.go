package group

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"rankfs/meta/durable"
)

// knownNodes are other nodes and where they are, in a file beside the log: for
// when that, and the state, cannot be read. The lock is for the list alone: the file is
// written without it, by one goroutine.
type knownNodes struct {
	path string
	mu   struct {
		sync.Mutex
		all []knownNode
	}
}

type knownNode struct {
	ID   string `json:"id"`
	Addr string `json:"addr"`
}

// The bounds of what is noted: all voters, and some more.
const (
	maxKnown      = 16
	maxKnownBytes = 16 << 10
)

// openKnown reads a file of known nodes. One that cannot be parsed has none.
func openKnown(path string) (*knownNodes, error) {
	k := &knownNodes{path: path}
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

func parseKnown(text []byte) (all []knownNode) {
	if json.Unmarshal(text, &all) != nil {
		return nil
	}
	all = slices.DeleteFunc(all, func(a knownNode) bool {
		return len(a.ID) != 16 || a.Addr == "" || len(a.Addr) > 256
	})
	return all[:min(len(all), maxKnown)]
}

// list returns a copy of the known nodes.
func (k *knownNodes) list() []knownNode {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.mu.all)
}

// meet notes where a node is until the next keep.
func (k *knownNodes) meet(a knownNode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.all = append(slices.DeleteFunc(k.mu.all, func(o knownNode) bool { return o.ID == a.ID }), a)
}

// keep writes the first maxKnown of all to the file, unless it has them already.
func (k *knownNodes) keep(all []knownNode) error {
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
