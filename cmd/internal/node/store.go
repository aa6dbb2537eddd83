package node

import (
	"context"
	"os"

	"rankfs/cache/peers"
	"rankfs/cmd/internal/catalog"
	"rankfs/fetch/batch"
)

// A store is what this node has for others. It is a peers.Store.
type store struct {
	batch.Server
	catalog *catalog.Catalog
}

// server gives records of the datasets of n.
func (n *Node) server() batch.Server {
	return batch.Server{
		Find:   n.catalog.ByIndex,
		Chunks: func(v *batch.Version) *batch.Chunks { return newChunks(n.cache, v, v.Readers()) },
	}
}

// File implements peers.Store.
func (s store) File(_ context.Context, hash peers.ID) (*os.File, int64, error) {
	return s.catalog.OpenIndex(hash)
}
