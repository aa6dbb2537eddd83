package simulate

import (
	"context"
	"fmt"
	"math"

	"rankfs/cache/ahead"
	"rankfs/cache/policy"
	"rankfs/meta"
)

// A run is a scenario in progress. The slots of its clock are those of ranks,
// then of servers, then of chains.
type run struct {
	s       Scenario
	clock   clock
	future  *future
	nodes   []node
	readers []reader
	servers []*server
	source  server
	chains  []chain
	idle    []int32 // chains
	first   int32   // slot of chains
	uses    []use   // of the batch that is begun

	whole    bool    // a batch is a partition
	home     []int32 // by partition: its node
	local    []int32 // its item there
	step     int64   // the furthest that was opened
	planned  int64   // the step of the next plan
	schedule schedule

	out     Outcome
	epoch   *Epoch
	started float64
	done    int // ranks that are through the epoch
	met     int // ranks that are through the step
	watch   func(*run)
}

// Run has the job run. There is one planner for each node.
func Run(ctx context.Context, s Scenario, planner func() policy.Planner) (Outcome, error) {
	r, err := newRun(s, planner)
	if err != nil {
		return Outcome{}, err
	}
	return r.out, r.run(ctx)
}

func newRun(s Scenario, planner func() policy.Planner) (*run, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &run{s: s, future: newFuture(&s), whole: s.Grains == 1 && s.Batch == 1 && !s.Once}
	r.future.s = &r.s
	if r.future.steps == 0 {
		return nil, fmt.Errorf("simulate: %w: there are fewer than a step has, and tail=drop leaves them out", meta.ErrInvalid)
	}
	r.out.Epochs = make([]Epoch, 0, s.Epochs)
	r.nodes, r.readers = make([]node, s.Nodes), make([]reader, s.ranks())
	r.build(planner)
	r.settleHomes()
	r.clock.grow(int(r.first))
	return r, nil
}

func (r *run) build(planner func() policy.Planner) {
	c, many := &r.s.Costs, float64(r.s.Workers)
	r.first = int32(len(r.readers))
	r.serve(&r.source, c.Source, c.Stream)
	for i := range r.nodes {
		n := &r.nodes[i]
		n.id, n.planner, n.workers, n.crew = int32(i), planner(), r.s.Workers, r.s.Workers
		n.fills = ahead.New(r.s.Workers)
		r.serve(&n.read, c.DiskRead, c.DiskRead)
		r.serve(&n.write, c.DiskWrite, c.DiskWrite)
		r.serve(&n.unpack, c.Decode*many, c.Decode)
		r.serve(&n.pack, c.Encode*many, c.Encode)
	}
	for i := range r.readers {
		k := &r.readers[i]
		k.rank, k.node, k.resting = int32(i), &r.nodes[i/r.s.Ranks], true
		k.ready = make([]batch, r.s.MaxAhead+4)
		for j := range k.ready {
			k.ready[j].step, k.ready[j].hold = -1, -1
		}
	}
}

func (r *run) serve(s *server, rate, stream float64) {
	s.rate, s.stream, s.slot = rate, stream, r.first
	r.servers = append(r.servers, s)
	r.first++
}

// settleHomes finds the node whose rank reads each partition's first grain in the
// source's order.
func (r *run) settleHomes() {
	if r.s.Once {
		return
	}
	r.home, r.local = make([]int32, r.s.Partitions), make([]int32, r.s.Partitions)
	all := r.s.cut(r.s.Partitions * r.s.Grains)
	for step := range all.Steps() {
		for rank := range r.readers {
			span := all.Span(uint64(rank), step)
			for p := span.First; p < min(span.First+span.Count, all.N); p++ {
				if p%uint64(r.s.Grains) == 0 {
					r.home[p/uint64(r.s.Grains)] = int32(rank / r.s.Ranks)
				}
			}
		}
	}
	for p := range r.home {
		n := &r.nodes[r.home[p]]
		r.local[p] = int32(len(n.items))
		n.items = append(n.items, r.item(int32(p)))
		n.parts = append(n.parts, int32(p))
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		n.target, n.guard = make([]policy.Level, len(n.items)), make([]guard, len(n.items))
	}
}

// item is a partition as planners see it: with waits that would be measured while
// all workers are busy, and share the source and the disk, but not a processor.
func (r *run) item(p int32) policy.Item {
	bytes, c := r.s.bytes(p), &r.s.Costs
	b := float64(bytes)
	it := policy.Item{Group: -1, Job: -1, Last: -1}
	if r.s.Sets != nil {
		it.Set = r.s.Sets[p]
	}
	it.Bytes = [policy.Levels]int64{policy.Disk: -1, policy.Packed: -1, policy.RAM: bytes}
	workers := float64(r.s.Workers)
	it.Wait[policy.Source] = c.Latency + b/math.Min(c.Stream, c.Source/float64(r.s.Nodes)/workers)
	it.Wait[policy.Disk], it.Move[policy.Disk] = b/c.DiskRead*workers, b/c.DiskWrite
	it.Wait[policy.Packed], it.Move[policy.Packed] = b/c.Decode, b/c.Encode
	if r.s.Disk > 0 {
		it.Bytes[policy.Disk] = bytes
	}
	if r.s.Packed > 0 {
		it.Bytes[policy.Packed] = int64(math.Ceil(b * r.s.Packed))
	}
	return it
}

func (r *run) run(ctx context.Context) error {
	r.begins(0)
	for events := 0; len(r.clock.heap) > 0; events++ {
		if events%(1<<16) == 0 && ctx.Err() != nil {
			return fmt.Errorf("simulate: %w", ctx.Err())
		}
		slot, _ := r.clock.next()
		switch ranks := int32(len(r.readers)); {
		case slot < ranks:
			r.worked(&r.readers[slot])
		case slot < r.first:
			r.proceed(r.servers[slot-ranks].end(&r.clock))
		default:
			r.proceed(slot - r.first)
		}
		if r.watch != nil {
			r.watch(r)
		}
		if len(r.out.Epochs) == r.s.Epochs && r.done == len(r.readers) {
			return nil
		}
	}
	panic("simulate: ranks wait, and nothing will happen")
}

// begins an epoch for all ranks at once.
func (r *run) begins(epoch int64) {
	if epoch > 0 {
		r.future.goOn()
	}
	r.out.Epochs = append(r.out.Epochs, Epoch{})
	r.epoch, r.started, r.done = &r.out.Epochs[len(r.out.Epochs)-1], r.clock.now, 0
	r.epoch.Stall[Plan] = r.s.Costs.Settle * float64(len(r.readers))
	r.planned = epoch * r.future.steps
	for i := range r.readers {
		r.clock.wake(int32(i), r.clock.now+r.s.Costs.Settle)
	}
}

// worked goes on with a rank that has done its work on a batch.
func (r *run) worked(k *reader) {
	if k.resting {
		k.resting = false
		k.node.readers++
	} else {
		r.release(k, k.batch(k.at()))
		if (k.at()+1)%r.future.steps == 0 {
			r.through(k)
			return
		}
		if r.s.Lockstep {
			r.meet(k)
			return
		}
	}
	r.open(k, k.at()+1)
}

// meet lets all ranks go on when the last one has done its step.
func (r *run) meet(k *reader) {
	k.since = r.clock.now
	if r.met++; r.met < len(r.readers) {
		return
	}
	r.met = 0
	for i := range r.readers {
		k := &r.readers[i]
		r.epoch.Meet += r.clock.now - k.since
		r.open(k, k.at()+1)
	}
}

// through says that a rank is through an epoch. The next one begins when all are.
func (r *run) through(k *reader) {
	k.resting = true
	k.node.readers--
	r.dispatch(k.node)
	if r.done++; r.done < len(r.readers) {
		return
	}
	r.epoch.Seconds = r.clock.now - r.started
	if next := int64(len(r.out.Epochs)); next < int64(r.s.Epochs) {
		r.begins(next)
	}
}

// open is what an open of a rank's next batch does.
func (r *run) open(k *reader, step int64) {
	r.step = max(r.step, step)
	if step >= r.planned {
		r.planned = step + max(1, (r.future.steps+int64(r.s.Plans)-1)/int64(r.s.Plans))
		r.plan(step)
	}
	r.follow(k, step)
	r.epoch.Opens++
	b := k.batch(step)
	if k.has(step) == missing {
		b = r.want(k, step)
		if r.resident(k, step) {
			r.inMemory(k, b)
		} else {
			k.node.demand.push(ticket{k.rank, step})
		}
	}
	if b.state == ready {
		r.work(k)
	} else {
		r.epoch.Waited++
		k.waiting, k.since = true, r.clock.now
	}
	r.dispatch(k.node)
}

// inMemory opens a batch in place, or an empty one.
func (r *run) inMemory(k *reader, b *batch) {
	b.state = ready
	if r.future.empty(k.rank, b.step) {
		return
	}
	i, _ := r.inPlace(k, b.step)
	n := k.node
	b.hold, b.bytes = i, n.items[i].Bytes[policy.RAM]
	n.guard[i].held++
	n.items[i].Last, n.guard[i].used = r.clock.now, max(n.guard[i].used, b.step)
	k.size = b.bytes
	k.large = max(k.large, b.bytes)
	b.found[policy.RAM], b.from[policy.RAM] = 1, b.bytes
}

// work has the rank work on the batch that it has opened.
func (r *run) work(k *reader) {
	b := k.batch(k.at())
	for l := range policy.Levels {
		r.epoch.Uses[l] += b.found[l]
		r.epoch.Bytes[l] += b.from[l]
	}
	seconds := r.s.Step * r.future.share(k.rank, k.at())
	r.epoch.Working += seconds
	r.clock.wake(k.rank, r.clock.now+seconds)
}
