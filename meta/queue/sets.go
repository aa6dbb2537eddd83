package queue

import "slices"

// holderSets numbers distinct sets of nodes as they come up: a hash table of
// numbers beside the sets themselves, since there may be a million of them.
type holderSets struct {
	nodes []int32 // of all sets, one after the other
	first []int32 // by set: its first in nodes
	size  []int32 // by set: how often it came up
	slots []int32 // set + 1, or 0; a power of two of them, at most half used
}

func newHolderSets() *holderSets {
	return &holderSets{slots: make([]int32, 64)}
}

func (h *holderSets) bounds(set int) (from, to int32) {
	if set+1 < len(h.first) {
		return h.first[set], h.first[set+1]
	}
	return h.first[set], int32(len(h.nodes))
}

func (h *holderSets) at(set int) []int32 {
	from, to := h.bounds(set)
	return h.nodes[from:to]
}

// id is the number of a set of nodes in ascending order.
func (h *holderSets) id(nodes []int32) int32 {
	slot := h.find(nodes)
	if h.slots[slot] == 0 {
		h.first = append(h.first, int32(len(h.nodes)))
		h.nodes = append(h.nodes, nodes...)
		h.size = append(h.size, 0)
		h.slots[slot] = int32(len(h.first))
		if 2*len(h.first) > len(h.slots) {
			h.widen()
			slot = h.find(nodes)
		}
	}
	set := h.slots[slot] - 1
	h.size[set]++
	return set
}

// find is the slot where the set is, or where it belongs.
func (h *holderSets) find(nodes []int32) int {
	hash := uint64(len(nodes))
	for _, n := range nodes {
		hash = (hash ^ uint64(n)) * 0x9e3779b97f4a7c15
		hash ^= hash >> 29
	}
	mask := len(h.slots) - 1
	slot := int(hash) & mask
	for h.slots[slot] != 0 && !slices.Equal(h.at(int(h.slots[slot]-1)), nodes) {
		slot = (slot + 1) & mask
	}
	return slot
}

func (h *holderSets) widen() {
	h.slots = make([]int32, 2*len(h.slots))
	for set := range h.first {
		h.slots[h.find(h.at(set))] = int32(set) + 1
	}
}
