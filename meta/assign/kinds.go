package assign

import (
	"slices"

	"rankfs/meta/lists"
)

// kinds numbers the distinct lists of targets as they come first. What can be
// read at the cost of a host comes first, ascending, then what can be read at
// that of a rack.
type kinds struct {
	lists.Table
	nodes int32 // targets from here on are racks
}

func (k *kinds) hosts(n int32) []int32 {
	all := k.At(n)
	hosts, _ := slices.BinarySearch(all, k.nodes)
	return all[:hosts]
}
