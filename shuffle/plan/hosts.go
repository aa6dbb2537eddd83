package plan

import (
	"slices"

	"rankfs/meta"
)

// A Seat is the host of so many ranks in a row.
type Seat struct {
	Host  string
	Ranks uint64
}

// Hosts gives hosts numbers, in the order in which they are added. A host has one
// number, by whichever of its names it is known.
type Hosts struct {
	names  []string // by number
	byName meta.Hosts[int32]
}

// Number gives hosts numbers in the order of their first rank, and says on which of
// them each rank is.
func Number(seats []Seat) (hosts *Hosts, ofRank []int32) {
	hosts = new(Hosts)
	for _, s := range seats {
		n, ok := hosts.Find(s.Host)
		if !ok {
			n = hosts.Add(s.Host)
		}
		for range s.Ranks {
			ofRank = append(ofRank, n)
		}
	}
	return hosts, ofRank
}

// Len is the number of hosts.
func (h *Hosts) Len() int { return len(h.names) }

// Names are the names by which they were added, by number. They are not to be
// changed.
func (h *Hosts) Names() []string { return h.names }

// Add gives the next number to a host that has none.
func (h *Hosts) Add(name string) int32 {
	n := int32(len(h.names))
	h.names = append(h.names, name)
	h.byName.Add(name, n)
	return n
}

// Find is the number of a host, by any of its names. A short name that several
// hosts have is none.
func (h *Hosts) Find(name string) (int32, bool) {
	if found := h.byName.Find(name); len(found) == 1 {
		return found[0], true
	}
	return 0, false
}

// Clone is a copy, to which others can be added.
func (h *Hosts) Clone() *Hosts {
	c := &Hosts{names: slices.Grow([]string(nil), len(h.names))}
	for _, name := range h.names {
		c.Add(name)
	}
	return c
}
