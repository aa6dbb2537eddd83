package main

import (
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"rankfs/meta"
	"rankfs/shuffle/order"
)

// A job is an epoch of records that are equally long, in full order, with equal
// shares, as the benchmark sees it from outside: from the table of chunks that
// the mount shows, and the order.
type job struct {
	cut     meta.Cut
	order   order.Order
	perHost uint64
	first   []uint64 // record of each chunk
	holders []uint16 // of each chunk, a bit for each host
}

// newJob reads the table of chunks. The ranks run on the hosts in blocks.
func newJob(table string, v meta.View, records uint64, hosts []string) job {
	j := job{cut: v.Cut(records, 0, 0), perHost: v.Ranks / uint64(len(hosts))}
	j.order = order.New(v.Order, records, v.Seed, v.Epoch)
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		var number, offset, bytes, count, first uint64
		var names string
		_, err := fmt.Sscan(line, &number, &offset, &bytes, &first, &count, &names)
		check(err)
		var set uint16
		for _, name := range strings.Split(names, ",") {
			short, _, _ := strings.Cut(name, ".")
			if i := slices.Index(hosts, short); i >= 0 {
				set |= 1 << i
			}
		}
		j.first, j.holders = append(j.first, first), append(j.holders, set)
	}
	return j
}

// optimum is the most records that ranks can read on a host that has them, if
// every step is divided as well as it can be.
func (j job) optimum(hosts int) (near uint64) {
	for step := range j.cut.Steps() {
		groups := make(map[uint16]uint64) // records by the set of hosts that have them
		last := j.cut.Span(j.cut.Ranks-1, step)
		for p := step * j.cut.Global; p < last.First+last.Count; p++ {
			record := j.order.At(p)
			chunk := sort.Search(len(j.first), func(i int) bool { return j.first[i] > record }) - 1
			groups[j.holders[chunk]]++
		}
		room := make([]uint64, hosts)
		for rank := range j.cut.Ranks {
			room[rank/j.perHost] += j.cut.Span(rank, step).Count
		}
		near += maxFlow(groups, room)
	}
	return near
}

// maxFlow is the maximum flow from groups of records through the hosts that
// have them, each with room for so many. It is the minimum cut, and with few hosts
// every cut can be tried: it cuts the hosts of one side from the sink, and the groups
// that any host of the other side has from the source.
func maxFlow(groups map[uint16]uint64, room []uint64) uint64 {
	least := ^uint64(0)
	for side := range uint16(1) << len(room) {
		var cut uint64
		for s := side; s != 0; s &= s - 1 {
			cut += room[bits.TrailingZeros16(s)]
		}
		for holders, records := range groups {
			if holders&^side != 0 {
				cut += records
			}
		}
		least = min(least, cut)
	}
	return least
}
