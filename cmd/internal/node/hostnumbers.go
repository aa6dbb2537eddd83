package node

import (
	"slices"

	"rankfs/meta"
)

// HostNumbers gives hosts numbers, in the order in which they come up.
type hostNumbers struct {
	names  []string // by number
	byName meta.Hosts[int32]
}

// number gives hosts numbers in the order of their first rank.
func number(seats []seat) (hosts *hostNumbers, ofRank []int32) {
	hosts = new(hostNumbers)
	for _, s := range seats {
		n, ok := hosts.find(s.Host)
		if !ok {
			n = hosts.add(s.Host)
		}
		for range s.Ranks {
			ofRank = append(ofRank, n)
		}
	}
	return hosts, ofRank
}

func (h *hostNumbers) len() int { return len(h.names) }

// add gives the next number to a host that has none.
func (h *hostNumbers) add(name string) int32 {
	n := int32(len(h.names))
	h.names = append(h.names, name)
	h.byName.Add(name, n)
	return n
}

// find is the number of a host, by any of its names. A short name that several
// hosts have is none.
func (h *hostNumbers) find(name string) (int32, bool) {
	if found := h.byName.Find(name); len(found) == 1 {
		return found[0], true
	}
	return 0, false
}

// clone is a copy, to which others can be added.
func (h *hostNumbers) clone() *hostNumbers {
	c := &hostNumbers{names: slices.Grow([]string(nil), len(h.names))}
	for _, name := range h.names {
		c.add(name)
	}
	return c
}
