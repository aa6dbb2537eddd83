package hdfs

import (
	"cmp"
	"slices"

	"rankfs/fetch/hdfs/namenode"
)

func hosts(b namenode.Block) []string {
	names := make([]string, len(b.Replicas))
	for i, r := range b.Replicas {
		names[i] = r.Host
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hostsOfMost returns the hosts that hold most of the bytes of some blocks, at
// most three.
func hostsOfMost(blocks []namenode.Block) []string {
	held := make(map[string]int64)
	for _, b := range blocks {
		for _, h := range hosts(b) {
			held[h] += b.Size
		}
	}
	names := make([]string, 0, len(held))
	for h := range held {
		names = append(names, h)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(-cmp.Compare(held[a], held[b]), cmp.Compare(a, b)) })
	names = names[:min(3, len(names))]
	slices.Sort(names)
	return names
}
