package views

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rankfs/fs"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// Holders says how many bytes of a batch each host has on its own disks.
type Holders map[string]int64

// maxHolders is how many hosts of a batch are named: a block has as many.
const maxHolders = 3

// names are the hosts that hold most, these first.
func (h Holders) names() []string {
	names := slices.SortedFunc(maps.Keys(h), func(a, b string) int { return cmp.Or(cmp.Compare(h[b], h[a]), cmp.Compare(a, b)) })
	return names[:min(maxHolders, len(names))]
}

// On is the bytes that a host holds. The host may be known by another of its names.
func (h Holders) On(host string) (bytes int64) {
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

// Holders finds out which hosts hold a batch, as last heard. A source that lies on this host
// is held by that, whatever it is called.
func (b *Batches) Holders(own string, rank, step uint64) Holders {
	h, _ := b.HoldersFor(context.Background(), own, rank, step) // this wait is not left
	return h
}

// HoldersFor is Holders for a caller that may leave: bytes are added up by record.
func (b *Batches) HoldersFor(ctx context.Context, own string, rank, step uint64) (Holders, error) {
	h := make(Holders)
	if !b.Version.Source.Remote && !b.View().ByChunk() {
		size, err := b.SizeFor(ctx, rank, step)
		h[b.Version.Source.Host(own)] = size
		return h, err
	}
	err := b.Version.EachChunk(b.Plan, rank, step, func(chunk int, bytes int64) error {
		for _, host := range b.chunkHosts(own, chunk) {
			h[host] += bytes
		}
		return ctx.Err()
	})
	return h, err
}

// chunkHosts are all that hold a chunk, as last heard.
func (b *Batches) chunkHosts(own string, chunk int) []string {
	hosts := b.Version.Hosts(chunk)
	if len(hosts) == 0 && !b.Version.Source.Remote {
		return []string{b.Version.Source.Host(own)}
	}
	return hosts
}

// Locality implements fs.Tables: where the bytes of each batch are.
func (v *View) Locality() fs.Table {
	a := v.now()
	const head, line = "%-16s %8s  %-*s %16s %16s  %-*s\n", "%-16s %8d  %-*s %16d %16d  %-*.*s\n"
	w, hosts := len("node"), max(len("hosts"), a.hostsWidth())
	for _, seat := range append(a.seats, plan.Seat{Host: a.host}) {
		w = max(w, len(seat.Host))
	}
	title := fmt.Sprintf(head, "batch", "rank", w, "node", "bytes", "local", hosts, "hosts")
	return fs.Table{
		Lines: 1 + a.Cut().Ranks*a.Cut().Steps(),
		Width: len(title),
		Append: func(ctx context.Context, dst []byte, i uint64) ([]byte, error) {
			if i == 0 {
				return append(dst, title...), nil
			}
			// Steps outside, ranks inside: the order in which a job reads.
			step, rank := (i-1)/a.Cut().Ranks, (i-1)%a.Cut().Ranks
			h, err := a.HoldersFor(ctx, a.host, rank, step)
			if err != nil {
				return nil, err
			}
			size, err := a.SizeFor(ctx, rank, step)
			if err != nil {
				return nil, err
			}
			return fmt.Appendf(dst, line, fmt.Sprintf("batch-%06d", step), rank, w, a.hostOf(rank),
				size, h.On(a.hostOf(rank)), hosts, hosts, strings.Join(h.names(), ",")), nil
		},
	}
}

// hostsWidth is the room that the names of a batch's hosts take at most.
func (a *assignment) hostsWidth() int {
	if !a.Version.Source.Remote {
		return len(a.Version.Source.Host(a.host))
	}
	longest, _ := a.Version.HostNames()
	return maxHolders*(longest+1) - 1
}
