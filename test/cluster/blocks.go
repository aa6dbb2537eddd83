package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"rankfs/test/eventually"
)

// A Block is one of a file's, with the hosts that the namenode says have it,
// the nearest to itself first.
type Block struct {
	ID     uint64
	Offset int64
	Bytes  int64
	Hosts  []string
}

// located is the answer of WebHDFS about the blocks of a file.
type located struct {
	LocatedBlocks struct {
		Blocks []struct {
			Block struct {
				ID    uint64 `json:"blockId"`
				Bytes int64  `json:"numBytes"`
			} `json:"block"`
			Start     int64 `json:"startOffset"`
			Locations []struct {
				Host string `json:"hostName"`
			} `json:"locations"`
		} `json:"locatedBlocks"`
	}
}

const maxLocations = 16 << 20 // bytes: some 10,000 blocks

// Blocks are a file's blocks.
func (c *namenodes) Blocks(ctx context.Context, file string) ([]Block, error) {
	answer, err := c.web(ctx, http.MethodGet, file, "GET_BLOCK_LOCATIONS", nil)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	var l located
	if err := json.NewDecoder(io.LimitReader(answer, maxLocations)).Decode(&l); err != nil {
		return nil, fmt.Errorf("read the blocks of %s: %w", file, err)
	}
	return l.blocks(), nil
}

// WaitReplicas waits until the namenode knows n replicas of each block of a
// file: closing a file waits for only one.
func (c *namenodes) WaitReplicas(ctx context.Context, file string, n int) error {
	err := eventually.Until(ctx, func() error {
		blocks, err := c.Blocks(ctx, file)
		if err == nil && slices.ContainsFunc(blocks, func(b Block) bool { return len(b.Hosts) < n }) {
			err = fmt.Errorf("there are %v", blocks)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for %d replicas of %s: %w", n, file, err)
	}
	return nil
}

func (l *located) blocks() []Block {
	var blocks []Block
	for _, b := range l.LocatedBlocks.Blocks {
		one := Block{ID: b.Block.ID, Offset: b.Start, Bytes: b.Block.Bytes}
		for _, at := range b.Locations {
			one.Hosts = append(one.Hosts, at.Host)
		}
		blocks = append(blocks, one)
	}
	return blocks
}
