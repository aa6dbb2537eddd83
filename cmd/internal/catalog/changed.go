package catalog

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"rankfs/fetch/peers"
	"rankfs/meta"
)

// CallChanged asks the node that alone has a source whether that has changed. A node of
// the release before does not know it.
const CallChanged = "/changed"

// An indexed names a dataset by the hash of its index.
type indexed struct {
	Index string `json:"index"`
}

// ask is a batch.Ask.
func (c *Catalog) ask(ctx context.Context, node string, dataset peers.ID) error {
	return c.config.Cluster.Ask(ctx, node, CallChanged, indexed{hex.EncodeToString(dataset[:])}, nil)
}

// Changed answers CallChanged, with an error that wraps meta.ErrStale if the source has
// changed.
func (c *Catalog) Changed(ctx context.Context, request json.RawMessage) error {
	var q indexed
	var id peers.ID
	err := json.Unmarshal(request, &q)
	if err == nil && len(q.Index) != hex.EncodedLen(len(id)) {
		err = errors.New("it names no index")
	}
	if err == nil {
		_, err = hex.Decode(id[:], []byte(q.Index))
	}
	if err != nil {
		return fmt.Errorf("question %w: %w", meta.ErrInvalid, err)
	}
	v := c.ByIndex(id)
	if v == nil {
		return meta.Worded(meta.ErrNotExist, "index %x does not exist on this node", id[:8])
	}
	if owner := v.Source.Elsewhere(); owner != "" {
		return meta.Worded(meta.ErrUnavailable, "the source is not on this node; it is on node %s", owner)
	}
	_, err = v.Source.Data(ctx)
	return err
}
