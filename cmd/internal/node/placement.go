package node

import (
	"fmt"
	"slices"
	"sync"

	"rankfs/meta"
	"rankfs/meta/assign"
)

// A seat is where so many ranks in a row run.
type seat struct {
	Host  string `json:"host"`
	Ranks uint64 `json:"ranks"`
}

// A placement is who reads what where it depends on who has it: a pure function
// of the cut, of where the ranks are, and of the index, which is the same file
// everywhere. So nodes that agree on these agree on every batch.
type placement struct {
	plan    *plan
	planner *assign.Planner
	setOf   []int32  // the holders of each chunk, or its home
	hosts   []string // by number

	epoch func() (assign.Division, error) // where a position is a chunk

	mu struct {
		sync.Mutex
		steps map[uint64]assign.Division
		ring  [keptSteps]uint64
		next  int
	}
}

// keptSteps are remembered: ranks go through an epoch side by side, and those
// of one node want the same steps.
const keptSteps = 32

// place gives p the placement that follows from where its ranks are, if that
// makes a difference: not if all batches are the same as with assign=strict.
func (p *plan) place(seats []seat) error {
	hosts, ranks := number(seats)
	if p.view.Assign == meta.AssignStrict || len(hosts) < 2 {
		return nil
	}
	if n := p.positions(); n > assign.MaxPositions { // said before any of it is looked at
		return fmt.Errorf("dividing %d positions by locality %w: use assign=strict, or fewer than %d", n, meta.ErrInvalid, assign.MaxPositions)
	}
	held := p.content.holdings(hosts)
	if p.view.Step.Unit != meta.UnitChunk {
		var err error
		if held, err = held.homes(ranks, len(hosts)); err != nil {
			return err
		}
	}
	planner, err := held.planner(ranks, len(hosts))
	if err != nil || planner.Indifferent() {
		return err
	}
	l := &placement{plan: p, planner: planner, setOf: held.setOf, hosts: make([]string, len(hosts))}
	for name, n := range hosts {
		l.hosts[n] = name
	}
	l.mu.steps = make(map[uint64]assign.Division)
	l.epoch = sync.OnceValues(l.divideEpoch)
	p.placement = l
	// Of the same version of a source there can be several indexes, as
	// replicas move: what decides the batches is this one.
	p.id = p.identify(fmt.Sprintf(" for %v by %x", seats, p.content.id))
	return nil
}

// positions is how many have to be divided at once.
func (p *plan) positions() uint64 {
	if p.view.Step.Unit == meta.UnitChunk {
		return p.cut.N
	}
	return min(p.cut.N, p.cut.Global)
}

// holdings say which of the hosts where ranks run hold each chunk.
type holdings struct {
	sets  [][]int32 // of hosts, by number
	setOf []int32   // of each chunk
}

func (c *content) holdings(hosts map[string]int32) holdings {
	h := holdings{setOf: make([]int32, c.index.Chunks())}
	known := make(map[string]int32)
	var key []byte
	var set []int32
	for i := range h.setOf {
		key, set = key[:0], set[:0]
		for _, name := range c.index.Chunk(i).Hosts {
			if n, ok := lookUp(hosts, name); ok {
				set, key = append(set, n), fmt.Append(key, n, " ")
			}
		}
		number, ok := known[string(key)]
		if !ok {
			number = int32(len(h.sets))
			h.sets = append(h.sets, slices.Clone(set))
			known[string(key)] = number
		}
		h.setOf[i] = number
	}
	return h
}

// homes leaves of the holders of each chunk the one that fetches it, as long as
// all are up: a record read there has been read from the source for good, while
// another holder would have to read the chunk once more, or ask. Chunks find
// their homes as they would find readers if each were a batch, so that a node is
// home to as much as its ranks read, where holders allow.
func (h holdings) homes(ofRank []int32, nodes int) (holdings, error) {
	planner, err := h.planner(ofRank, nodes)
	if err != nil {
		return h, err
	}
	chunks := uint64(len(h.setOf))
	v := meta.View{Ranks: uint64(len(ofRank)), Step: meta.BatchSize{N: 1, Unit: meta.UnitChunk}}
	strict, err := assign.StrictEpoch(v.Cut(0, 0, chunks))
	if err != nil {
		return h, err
	}
	d, err := planner.Step(strict, h.setOf)
	if err != nil {
		return h, err
	}
	homes := holdings{setOf: make([]int32, chunks)}
	for n := range int32(nodes) {
		homes.sets = append(homes.sets, []int32{n})
	}
	for rank, node := range ofRank {
		for _, chunk := range d.Of(rank) {
			homes.setOf[chunk] = node
		}
	}
	return homes, nil
}

// home is the host that fetches a chunk, where positions are records.
func (l *placement) home(chunk int) string { return l.hosts[l.setOf[chunk]] }

func (h holdings) planner(nodeOf []int32, nodes int) (*assign.Planner, error) {
	sets := new(assign.Sets)
	for _, set := range h.sets {
		sets.Add(set...)
	}
	return assign.New(assign.Cluster{Nodes: nodes, NodeOf: nodeOf}, sets)
}

// number gives hosts numbers in the order of their first rank.
func number(seats []seat) (hosts map[string]int32, ofRank []int32) {
	hosts = make(map[string]int32)
	for _, s := range seats {
		n, ok := hosts[s.Host]
		if !ok {
			n = int32(len(hosts))
			hosts[s.Host] = n
		}
		for range s.Ranks {
			ofRank = append(ofRank, n)
		}
	}
	return hosts, ofRank
}

// lookUp finds a host by its full name or the first part of it.
func lookUp(hosts map[string]int32, name string) (int32, bool) {
	n, ok := hosts[name]
	if !ok {
		n, ok = hosts[short(name)]
	}
	return n, ok
}

// positions are those of a batch, ascending, counted from base.
func (l *placement) positions(rank, step uint64) (of []int32, base uint64, err error) {
	if l.plan.view.Step.Unit == meta.UnitChunk {
		d, err := l.epoch()
		if err != nil {
			return nil, 0, err
		}
		all := d.Of(int(rank))
		if step >= uint64(len(all)) {
			return nil, 0, nil
		}
		return all[step : step+1], 0, nil
	}
	d, err := l.divideStep(step)
	if err != nil {
		return nil, 0, err
	}
	return d.Of(int(rank)), step * l.plan.cut.Global, nil
}

func (l *placement) divideStep(step uint64) (assign.Division, error) {
	if d, ok := l.remembered(step); ok {
		return d, nil
	}
	p := l.plan
	strict, err := assign.StrictStep(p.cut, step)
	if err != nil {
		return assign.Division{}, err
	}
	of := make([]int32, strict.Len())
	for i := range of {
		record := p.order.At((step*p.cut.Global + uint64(i)) % p.cut.N)
		of[i] = l.setOf[p.content.index.ChunkOf(record)]
	}
	d, err := l.planner.Step(strict, of)
	if err == nil {
		l.remember(step, d)
	}
	return d, err
}

func (l *placement) divideEpoch() (assign.Division, error) {
	p := l.plan
	strict, err := assign.StrictEpoch(p.cut)
	if err != nil {
		return assign.Division{}, err
	}
	of := make([]int32, strict.Len())
	for i := range of {
		of[i] = l.setOf[p.order.At(uint64(i)%p.cut.N)]
	}
	return l.planner.Step(strict, of)
}

func (l *placement) remembered(step uint64) (assign.Division, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.mu.steps[step]
	return d, ok
}

func (l *placement) remember(step uint64, d assign.Division) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.mu.steps[step]; ok {
		return
	}
	if len(l.mu.steps) == keptSteps {
		delete(l.mu.steps, l.mu.ring[l.mu.next])
	}
	l.mu.steps[step] = d
	l.mu.ring[l.mu.next] = step
	l.mu.next = (l.mu.next + 1) % keptSteps
}
