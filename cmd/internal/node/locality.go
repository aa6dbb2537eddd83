package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rankfs/fs"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// Holders says how many bytes of a batch each host has on its own disks.
type holders map[string]int64

// maxHolders is how many hosts of a batch are named: a block has as many.
const maxHolders = 3

// names are the hosts that hold most, these first.
func (h holders) names() []string {
	names := slices.SortedFunc(maps.Keys(h), func(a, b string) int { return cmp.Or(cmp.Compare(h[b], h[a]), cmp.Compare(a, b)) })
	return names[:min(maxHolders, len(names))]
}

// held is what a host holds, which may be known by another of its names.
func (h holders) held(host string) (bytes int64) {
	if bytes, ok := h[host]; ok {
		return bytes
	}
	for name, n := range h {
		if meta.SameHost(name, host) {
			bytes = max(bytes, n)
		}
	}
	return bytes
}

// holders finds out who holds a batch.
func (v *view) holders(rank, step uint64) holders {
	h, x := make(holders), v.content.index
	add := func(chunk int, bytes int64) {
		for _, host := range v.chunkHosts(chunk) {
			h[host] += bytes
		}
	}
	if v.View().Step.Unit == meta.UnitChunk {
		chunks, err := v.AppendChunks(nil, rank, step)
		if err != nil {
			return h
		}
		for _, c := range chunks {
			add(c, x.Chunk(c).Bytes)
		}
		return h
	}
	if !v.content.remote {
		h[v.content.sourceHost(v.host)] = v.Size(rank, step)
		return h
	}
	v.each(rank, step, func(b *recordBatch) error {
		for _, r := range b.records {
			add(x.ChunkOf(r), x.Size(r))
		}
		return nil
	})
	return h
}

// Locality is the table of where the bytes of each batch are.
func (v *view) Locality() fs.Table {
	const head, line = "%-16s %8s  %-*s %16s %16s  %-*s\n", "%-16s %8d  %-*s %16d %16d  %-*.*s\n"
	w, hosts := len("node"), max(len("hosts"), v.content.hostsWidth(v.content.sourceHost(v.host)))
	for _, s := range append(v.seats, plan.Seat{Host: v.host}) {
		w = max(w, len(s.Host))
	}
	title := fmt.Sprintf(head, "batch", "rank", w, "node", "bytes", "local", hosts, "hosts")
	return fs.Table{
		Lines: 1 + v.Cut().Ranks*v.Cut().Steps(),
		Width: len(title),
		Append: func(dst []byte, i uint64) []byte {
			if i == 0 {
				return append(dst, title...)
			}
			// Steps outside, ranks inside: the order in which a job reads.
			step, rank := (i-1)/v.Cut().Ranks, (i-1)%v.Cut().Ranks
			h := v.holders(rank, step)
			return fmt.Appendf(dst, line, fmt.Sprintf("batch-%06d", step), rank, w, v.hostOf(rank),
				v.Size(rank, step), h.held(v.hostOf(rank)), hosts, hosts, strings.Join(h.names(), ","))
		},
	}
}

// hostsWidth is the room that the names of a batch's hosts take at most.
func (c *content) hostsWidth(own string) int {
	if !c.remote {
		return len(own)
	}
	c.width.Do(c.measure)
	return maxHolders*(c.longest+1) - 1
}

// holdersWidth is the same for all hosts of a chunk. Where replicas moved since
// the index was made there may be more, or longer names; what does not fit is left out.
func (c *content) holdersWidth(own string) int {
	if !c.remote {
		return max(len("hosts"), len(own))
	}
	c.width.Do(c.measure)
	return max(len("hosts"), min(maxHostsWidth, max(c.most, maxHolders)*(c.longest+1)-1))
}

// measure looks for the longest name of a host and the most hosts of a chunk.
func (c *content) measure() {
	for i := range c.index.Chunks() {
		hosts := c.index.Chunk(i).Hosts
		c.most = max(c.most, len(hosts))
		for _, h := range hosts {
			c.longest = max(c.longest, len(h))
		}
	}
}

// sourceHost is where a source lies that does not say where it is: here, unless
// only another node has it.
func (c *content) sourceHost(own string) string {
	if keeper := c.elsewhere(); keeper != "" && c.held.attached() == nil {
		if host, ok := c.owners.Host(keeper); ok {
			return host
		}
	}
	return own
}

// hosts are those that hold a chunk, as last heard.
func (c *content) hosts(chunk int) []string {
	if d := c.held.attached(); d != nil {
		return d.Hosts(chunk)
	}
	return c.index.Chunk(chunk).Hosts
}
