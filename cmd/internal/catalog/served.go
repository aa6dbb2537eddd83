package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"rankfs/meta"
)

// CallServed asks a node to answer when it serves a dataset.
const CallServed = "/served"

// awaitTime is how long a node that registers a dataset waits for the others. One that
// is up has it within some tenths of a second, and its index soon after.
const awaitTime = 5 * time.Second

// A version names a dataset as of a generation.
type version struct {
	Name       string `json:"name"`
	Generation uint64 `json:"generation"`
}

// awaitOthers waits until the other nodes that are up serve a dataset as this one does,
// so that a user who has registered it finds it on any of them. A node that is slow, or
// of the release before, is not waited for, nor one that cannot load it.
func (c *Catalog) awaitOthers(ctx context.Context, v version) {
	ctx, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	var asked sync.WaitGroup
	for _, n := range c.config.State.Nodes() {
		if !n.Up || n.ID == c.config.Self {
			continue
		}
		asked.Go(func() {
			if err := c.config.Cluster.Ask(ctx, n.ID, CallServed, v, nil); err != nil {
				c.config.Log.Debug("node not waited for", "node", n.ID, "dataset", v.Name, "cause", err)
			}
		})
	}
	asked.Wait()
}

// Served answers CallServed, when this node serves what the request names.
func (c *Catalog) Served(ctx context.Context, request json.RawMessage) error {
	var v version
	if err := json.Unmarshal(request, &v); err != nil {
		return fmt.Errorf("question %w: %w", meta.ErrInvalid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	_, err := c.await(ctx, v.Name, v.Generation)
	return err
}
