package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rankfs/fetch/batch"
	"rankfs/fs"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// Holders says how many bytes of a batch each host has on its own disks.
type holders map[string]int64

// recordsAtOnce is how many records of a batch are looked at at a time.
const recordsAtOnce = 4096

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
	h, x := make(holders), v.Version.Index
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
			add(c, x.ChunkBytes(c))
		}
		return h
	}
	if !v.Version.Source.Remote {
		h[sourceHost(v.Version, v.host)] = v.Size(rank, step)
		return h
	}
	v.Each(rank, step, 0, make([]uint64, 0, recordsAtOnce), func(records []uint64) error {
		for _, r := range records {
			add(x.ChunkOf(r), x.Size(r))
		}
		return nil
	})
	return h
}

// Locality is the table of where the bytes of each batch are.
func (v *view) Locality() fs.Table {
	const head, line = "%-16s %8s  %-*s %16s %16s  %-*s\n", "%-16s %8d  %-*s %16d %16d  %-*.*s\n"
	w, hosts := len("node"), max(len("hosts"), v.hostsWidth())
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
func (v *view) hostsWidth() int {
	if !v.Version.Source.Remote {
		return len(sourceHost(v.Version, v.host))
	}
	longest, _ := v.Version.HostNames()
	return maxHolders*(longest+1) - 1
}

// holdersWidth is the same for all hosts of a chunk. Where replicas moved since
// the index was made there may be more, or longer names; what does not fit is left out.
func (v *view) holdersWidth() int {
	if !v.Version.Source.Remote {
		return max(len("hosts"), len(sourceHost(v.Version, v.host)))
	}
	longest, most := v.Version.HostNames()
	return max(len("hosts"), min(maxHostsWidth, max(most, maxHolders)*(longest+1)-1))
}

// sourceHost is where a source lies that does not say where it is: here, unless
// only another node has it.
func sourceHost(v *batch.Version, own string) string {
	if host, ok := v.Source.HostElsewhere(); ok {
		return host
	}
	return own
}
