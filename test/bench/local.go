package main

import (
	"context"
	"path/filepath"

	java "rankfs/test/hadoop"
)

// Readers of a local file of HDFS, each a process that stays.
type near struct {
	ours, theirs, theirsTCP *asked
}

const (
	nearFile = "/bench/2GiB"
	nearSize = 2 << 30
)

// near starts them. All have a datanode with the whole file on their host; ours
// and theirs take the blocks by file, theirsTCP over TCP.
func (b *bench) near() *near {
	h := b.hadoop()
	if h.near != nil {
		return h.near
	}
	h.put(nearFile, nearSize, hdfsBlock)
	program := filepath.Join(b.dir, "stream")
	output("go", "build", "-o", program, "./test/bench/stream")
	on := context.Background()
	h.near = &near{
		ours:      ask(h.host.Command(on, program, "-conf", h.cluster.ConfByFile())),
		theirs:    ask(h.host.JavaByFile(on, java.SpeedOptions, "Read")),
		theirsTCP: ask(h.host.JavaWith(on, java.SpeedOptions, "Read")),
	}
	return h.near
}

func (n *near) end() {
	for _, a := range []*asked{n.ours, n.theirs, n.theirsTCP} {
		a.end()
	}
}

// localBlocks reads the file by one stream: ours into slabs, the peer's to
// nowhere.
func localBlocks(peer func(*near) *asked, figure func(reading) float64) func(*bench) (ours, theirs func() float64) {
	return func(b *bench) (ours, theirs func() float64) {
		n, h := b.near(), b.hadoop()
		return func() float64 {
				return figure(n.ours.order(map[string]any{"path": h.cluster.Nameservice() + nearFile, "threads": 1}))
			}, func() float64 {
				return figure(peer(n).order(map[string]any{"threads": 1,
					"ranges": []any{map[string]any{"path": nearFile, "offset": 0, "length": nearSize}}}))
			}
	}
}

func byFile(n *near) *asked  { return n.theirs }
func overTCP(n *near) *asked { return n.theirsTCP }
