package node

import (
	"context"
	"encoding/hex"
	"errors"
	"os"

	"rankfs/cache/peers"
	"rankfs/fetch/batch"
	"rankfs/meta"
)

// A store is what this node has for others. It is a peers.Store.
type store struct {
	batch.Server
	indexes *indexes
}

// server gives records of the datasets of n.
func (n *Node) server() batch.Server {
	return batch.Server{
		Find: func(index peers.ID) *batch.Version {
			if d := n.catalog.byIndex(hex.EncodeToString(index[:])); d != nil {
				return d.version
			}
			return nil
		},
		Chunks: func(v *batch.Version) *batch.Chunks { return newChunks(n.cache, v, v.Readers()) },
	}
}

// File implements peers.Store.
func (s store) File(_ context.Context, hash peers.ID) (*os.File, int64, error) {
	f, err := os.Open(s.indexes.path(hex.EncodeToString(hash[:])))
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, meta.Worded(meta.ErrNotExist, "index %x does not exist on this node", hash[:8])
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
