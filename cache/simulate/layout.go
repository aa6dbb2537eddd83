package simulate

import (
	"math"

	"rankfs/cache/policy"
)

// A layout has the reads of the ranks, and on which node each partition has its owner. It
// does not change while the job runs, but for the epoch that the future begins with.
type layout struct {
	s      Scenario
	future *future
	whole  bool    // a batch is a partition
	owner  []int32 // by partition: its node
	local  []int32 // its item there
}

// findOwners gives each node its partitions.
func (l *layout) findOwners(nodes []node) {
	if l.owner = l.future.owner; l.owner == nil {
		return
	}
	l.local = make([]int32, l.s.Partitions)
	for p := range l.owner {
		n := &nodes[l.owner[p]]
		l.local[p] = int32(len(n.items))
		n.items = append(n.items, l.item(int32(p)))
		n.partitions = append(n.partitions, int32(p))
	}
	for i := range nodes {
		n := &nodes[i]
		n.target, n.guard = make([]policy.Level, len(n.items)), make([]guard, len(n.items))
	}
}

// item is a partition as policies see it: with waits that would be measured while
// all workers are busy, and share the source and the disk, but not a processor.
func (l *layout) item(p int32) policy.Item {
	bytes, c := l.s.bytes(p), &l.s.Costs
	b := float64(bytes)
	it := policy.Item{Group: -1, Job: -1, Last: -1}
	if l.s.Sets != nil {
		it.Series = l.s.Sets[p]
	}
	it.Bytes = [policy.Levels]int64{policy.Disk: -1, policy.Packed: -1, policy.RAM: bytes}
	workers := float64(l.s.Workers)
	it.Wait[policy.Source] = c.Latency + b/math.Min(c.Stream, c.Source/float64(l.s.Nodes)/workers)
	it.Wait[policy.Disk], it.Move[policy.Disk] = b/c.DiskRead*workers, b/c.DiskWrite
	it.Wait[policy.Packed], it.Move[policy.Packed] = b/c.Decode, b/c.Encode
	if l.s.Disk > 0 {
		it.Bytes[policy.Disk] = bytes
	}
	if l.s.Packed > 0 {
		it.Bytes[policy.Packed] = int64(math.Ceil(b * l.s.Packed))
	}
	return it
}

// wanting is the first step in a reader's window that is neither there nor on its way.
func (l *layout) wanting(k *reader) (step int64, ok bool) {
	at, ok := k.Missing(l.window(k), uint64(l.horizon(k.at())), func(step uint64) bool {
		return k.has(int64(step)) != missing || l.resident(k, int64(step))
	})
	return int64(at), ok
}

// window is the number of steps ahead of a rank that are worth having.
func (l *layout) window(k *reader) uint64 {
	size := max((k.size+page-1)/page*page, page)
	latency := 0.0
	if k.node.speed > 0 {
		latency = float64(size) / k.node.speed
	}
	return k.Window(size, l.s.Memory/int64(max(1, k.node.readers)), latency, k.node.fills.AtOnce(), l.s.MaxAhead)
}

// horizon is the first step that a reader may not have made ready.
func (l *layout) horizon(at int64) int64 {
	epoch := at / l.future.steps
	if l.s.Cross && epoch+1 < int64(l.s.Epochs) {
		epoch++
	}
	return (epoch + 1) * l.future.steps
}

// resident reports whether the batch could be opened in place at once.
func (l *layout) resident(k *reader, step int64) bool {
	if l.future.empty(k.rank, step) {
		return true
	}
	i, ok := l.inPlace(k, step)
	return ok && k.node.items[i].Now == policy.RAM && !k.node.guard[i].loading
}

// inPlace is the item of the reader's own node that the batch is.
func (l *layout) inPlace(k *reader, step int64) (item int32, ok bool) {
	if !l.whole {
		return 0, false
	}
	p := l.future.one(k.rank, step)
	return l.local[p], l.owner[p] == k.node.id
}

// over reports whether a rank has opened its last batch of an epoch, and no batch of
// the next is made ready ahead.
func (l *layout) over(k *reader) bool {
	return !l.s.Cross && (k.at()+1)%l.future.steps == 0
}

// ownerOf is the node that brings a partition for a reader.
func (l *layout) ownerOf(k *reader, partition int32) int32 {
	if l.s.Once {
		return k.node.id
	}
	return l.owner[partition]
}
