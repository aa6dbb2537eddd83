package assign

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// A kind is where something can be read at the cost of a host, ascending in
// target[first:racks], and at that of a rack, in target[racks:end].
type kind struct{ first, racks, end int32 }

// kinds numbers the distinct lists of targets as they come first. It finds
// them again by a table of its own, since a job has a million: a map with a
// string for each would take most of the time of a plan.
type kinds struct {
	list   []kind
	target []int32
	slots  []int32 // open addressing, a power of two, at most half full: number+1
}

// maxTargets bounds the table's memory.
const maxTargets = 1 << 27

func (k *kinds) hosts(n int32) []int32 { return k.target[k.list[n].first:k.list[n].racks] }
func (k *kinds) all(n int32) []int32   { return k.target[k.list[n].first:k.list[n].end] }

// number returns the number of the kind that has these hosts and racks.
func (k *kinds) number(hosts, racks []int32) (int32, error) {
	if 2*len(k.list) >= len(k.slots) {
		k.grow()
	}
	i := hash(hash(0, hosts), racks) & uint64(len(k.slots)-1)
	for ; k.slots[i] > 0; i = (i + 1) & uint64(len(k.slots)-1) {
		n := k.slots[i] - 1
		if all := k.all(n); slices.Equal(k.hosts(n), hosts) && slices.Equal(all[len(hosts):], racks) {
			return n, nil
		}
	}
	first := int32(len(k.target))
	if len(k.target)+len(hosts)+len(racks) > maxTargets {
		return 0, fmt.Errorf("sets of nodes %w: together they name more than %d", meta.ErrInvalid, maxTargets)
	}
	k.target = append(append(k.target, hosts...), racks...)
	k.list = append(k.list, kind{first, first + int32(len(hosts)), int32(len(k.target))})
	k.slots[i] = int32(len(k.list))
	return k.slots[i] - 1, nil
}

func (k *kinds) grow() {
	k.slots = make([]int32, max(64, 2*len(k.slots)))
	for n := range k.list {
		i := hash(0, k.all(int32(n))) & uint64(len(k.slots)-1)
		for k.slots[i] > 0 {
			i = (i + 1) & uint64(len(k.slots)-1)
		}
		k.slots[i] = int32(n + 1)
	}
}

// hash mixes targets into h. Whoever chooses who holds what could make kinds
// collide, and gains a slow plan of his own data.
func hash(h uint64, targets []int32) uint64 {
	for _, t := range targets {
		h = (h ^ uint64(t)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}
