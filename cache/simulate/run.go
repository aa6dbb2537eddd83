package simulate

import (
	"context"
	"fmt"

	"rankfs/cache/ahead"
	"rankfs/cache/policy"
	"rankfs/meta"
)

// A simulation is a scenario in progress: the ranks, and the clock that they go by.
type simulation struct {
	*fills
	choosing *choosing
	servers  []*server
	choice   int64 // the step of the next choice of levels
	done     int   // ranks that are through the epoch
	met      int   // ranks that are through the step
	watch    func(*simulation)
}

// Run has the job run. There is one policy for each node.
func Run(ctx context.Context, s Scenario, by func() policy.Policy) (Outcome, error) {
	r, err := newSimulation(s, by)
	if err != nil {
		return Outcome{}, err
	}
	return r.out, r.run(ctx)
}

func newSimulation(s Scenario, by func() policy.Policy) (*simulation, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &world{layout: layout{s: s, future: newFuture(&s), whole: s.Grains == 1 && s.Batch == 1 && !s.Once}}
	c := &caches{w}
	r := &simulation{fills: &fills{bringing: &bringing{caches: c}}, choosing: &choosing{c}}
	r.future.s, r.link = &r.s, s.Costs.Link
	if r.future.steps == 0 {
		return nil, meta.Worded(meta.ErrInvalid, "simulate: there are fewer than a step has, and tail=drop leaves them out")
	}
	r.out.Epochs = make([]Epoch, 0, s.Epochs)
	r.nodes, r.readers = make([]node, s.Nodes), make([]reader, s.ranks())
	r.build(by)
	r.findOwners(r.nodes)
	r.clock.grow(int(r.first))
	return r, nil
}

// build makes the servers and the readers. Each has a slot of the clock: first the ranks, then the
// servers, and from r.first on the chains.
func (r *simulation) build(by func() policy.Policy) {
	c, many := &r.s.Costs, float64(r.s.Workers)
	r.first = int32(len(r.readers))
	r.serve(&r.source, c.Source, c.Stream)
	for i := range r.nodes {
		n := &r.nodes[i]
		n.id, n.policy, n.workers, n.crew = int32(i), by(), r.s.Workers, r.s.Workers
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

func (r *simulation) serve(s *server, rate, stream float64) {
	s.rate, s.stream, s.slot = rate, stream, r.first
	r.servers = append(r.servers, s)
	r.first++
}

// run goes from one alarm of the clock to the next: a rank has done its work on a batch, a server
// has ended a transfer, or a chain goes on.
func (r *simulation) run(ctx context.Context) error {
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
func (r *simulation) begins(epoch int64) {
	if epoch > 0 {
		r.future.goOn()
	}
	r.out.Epochs = append(r.out.Epochs, Epoch{})
	r.epoch, r.started, r.done = &r.out.Epochs[len(r.out.Epochs)-1], r.clock.now, 0
	r.epoch.Stall[Plan] = r.s.Costs.Settle * float64(len(r.readers))
	r.choice = epoch * r.future.steps
	for i := range r.readers {
		r.clock.wake(int32(i), r.clock.now+r.s.Costs.Settle)
	}
}

// worked goes on with a rank that has done its work on a batch.
func (r *simulation) worked(k *reader) {
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
func (r *simulation) meet(k *reader) {
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
func (r *simulation) through(k *reader) {
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

// follow notes that a rank opens a step.
func (r *simulation) follow(k *reader, step int64) {
	now := r.clock.now
	if step == 0 || step%r.future.steps == 0 && !r.s.Cross {
		k.Cursor = ahead.Cursor{Run: 1}
	} else {
		k.Run++
		k.Took(now - max(k.seen, k.had))
	}
	k.Open(uint64(step))
	k.seen = now
}

// open opens a rank's next batch.
func (r *simulation) open(k *reader, step int64) {
	r.step = max(r.step, step)
	if step >= r.choice {
		r.choice = step + max(1, (r.future.steps+int64(r.s.Choices)-1)/int64(r.s.Choices))
		r.choosing.choose(step)
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
func (r *simulation) inMemory(k *reader, b *batch) {
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
