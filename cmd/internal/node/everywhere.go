package node

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"rankfs/meta"
)

// callServed asks a node to answer when it serves a dataset.
const callServed = "/served"

// everywhereWait is how long who registers a dataset waits for the other nodes. One
// that is up has it within some tenths of a second, and its index soon after.
const everywhereWait = 5 * time.Second

// A registered names a dataset as of a generation.
type registered struct {
	Name       string `json:"name"`
	Generation uint64 `json:"generation"`
}

// everywhere waits until the other nodes that are up serve a dataset as this one
// does, so that who has registered it finds it on any of them. A node that is slow,
// or of the release before, is not waited for, nor one that cannot load it.
func (n *Node) everywhere(ctx context.Context, r registered) {
	ctx, cancel := context.WithTimeout(ctx, everywhereWait)
	defer cancel()
	var asked sync.WaitGroup
	for _, m := range n.member.machine.Nodes() {
		if !m.Up || m.ID == n.member.group.Self() {
			continue
		}
		asked.Go(func() {
			if err := n.member.group.Ask(ctx, m.ID, callServed, r, nil); err != nil {
				n.config.Log.Debug("node not waited for", "node", m.ID, "dataset", r.Name, "cause", err)
			}
		})
	}
	asked.Wait()
}

// serves answers when this node does.
func (n *Node) serves(ctx context.Context, _ string, request json.RawMessage) (any, error) {
	var r registered
	if err := json.Unmarshal(request, &r); err != nil {
		return nil, fmt.Errorf("question %w: %w", meta.ErrInvalid, err)
	}
	c := n.serving.Load()
	if c == nil {
		return nil, meta.Worded(meta.ErrUnavailable, "this node begins")
	}
	ctx, cancel := context.WithTimeout(ctx, everywhereWait)
	defer cancel()
	_, err := c.await(ctx, r.Name, r.Generation)
	return nil, err
}
