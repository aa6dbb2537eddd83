package node

import (
	"fmt"
	"sync"

	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// An allotment says which host is home to each chunk, and fetches it, as long as
// all are up: a record read there has been read from the source for good, while
// another holder would have to read the chunk once more, or ask. Chunks find
// their homes as they would find readers if each were a batch, so that a host is
// home to as much as its ranks read, where holders allow.
type allotment struct {
	homeOf []int32  // by chunk: the host's number
	hosts  []string // by number
	kind   string   // of the stretches that it was found by
}

// allotments remembers the last one: it takes seconds for millions of chunks, and
// is the same for all epochs of a job.
type allotments struct {
	mu struct {
		sync.Mutex // held while one is made: who else waits wants the same
		seats      string
		last       *allotment
	}
}

// allot finds homes for ranks that sit so.
func (c *content) allot(seats []plan.Seat) (*allotment, error) {
	a, key := &c.allotments, fmt.Sprint(seats)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.last != nil && a.mu.seats == key {
		return a.mu.last, nil
	}
	made, err := c.findHomes(seats)
	if err == nil {
		a.mu.seats, a.mu.last = key, made
	}
	return made, err
}

func (c *content) findHomes(seats []plan.Seat) (*allotment, error) {
	hosts, ranks := plan.Number(seats)
	a := &allotment{homeOf: make([]int32, c.index.Chunks()), hosts: hosts.Names()}
	v := meta.View{Ranks: uint64(len(ranks)), Step: meta.BatchSize{Unit: meta.UnitChunk}}
	inOrder := func(position uint64) uint64 { return position }
	s := newStretches(c.index, v.Cut(0, 0, uint64(len(a.homeOf))), inOrder, hosts, ranks)
	a.kind = s.kind()
	for number := range s.count() {
		d, err := s.divide(number)
		if err != nil {
			return nil, err
		}
		for rank, host := range ranks {
			for _, chunk := range d.Of(rank) {
				a.homeOf[s.first(number)+uint64(chunk)] = host
			}
		}
	}
	return a, nil
}
