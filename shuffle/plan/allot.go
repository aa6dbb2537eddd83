package plan

import (
	"fmt"
	"sync"

	"rankfs/meta"
)

// An allotment says which host owns each chunk, and fetches it, as long as all are
// up: a record read there has been read from the source for good, while another
// holder would have to read the chunk once more, or ask.
//
// Each chunk has one owner, a host with a rank. Chunks find their owners as they
// would find readers if each were a batch, so that a host owns as much as its ranks
// read, where holders allow.
type allotment struct {
	ownerOf []int32  // by chunk: the host's number
	hosts   []string // by number
	kind    string   // of the stretches that it was found by
}

// allotments remembers the last one: it takes seconds for millions of chunks, and
// is the same for all epochs of a job. The lock is held while one is made: a caller that
// waits wants the same one.
type allotments struct {
	mu struct {
		sync.Mutex
		seats string
		last  *allotment
	}
}

// allot finds owners for ranks that sit so.
func (a *allotments) allot(x Index, seats []Seat) (*allotment, error) {
	key := fmt.Sprint(seats)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.last != nil && a.mu.seats == key {
		return a.mu.last, nil
	}
	made, err := findOwners(x, seats)
	if err == nil {
		a.mu.seats, a.mu.last = key, made
	}
	return made, err
}

func findOwners(x Index, seats []Seat) (*allotment, error) {
	hosts, ranks := Number(seats)
	a := &allotment{ownerOf: make([]int32, x.Chunks()), hosts: hosts.Names()}
	view := meta.View{Ranks: uint64(len(ranks)), Step: meta.BatchSize{Unit: meta.UnitChunk}}
	inOrder := func(position uint64) uint64 { return position }
	s := newStretches(x, view.Cut(0, 0, uint64(len(a.ownerOf))), inOrder, hosts, ranks)
	a.kind = s.kind()
	for number := range s.count() {
		d, err := s.divide(number)
		if err != nil {
			return nil, err
		}
		for rank, host := range ranks {
			for _, chunk := range d.Of(rank) {
				a.ownerOf[s.first(number)+uint64(chunk)] = host
			}
		}
	}
	return a, nil
}
