package cache

import (
	"cmp"
	"math"
	"slices"
	"time"

	"rankfs/cache/pack"
	"rankfs/cache/policy"
	"rankfs/meta"
)

// An outlook is what a policy is given: the batches that are here, and the opens to
// come. It is the choosing goroutine's alone; only survey takes the cache's lock.
type outlook struct {
	*tiers
	time    timeline
	readers *readers // used only under the cache's lock
	problem policy.Problem
	index   map[Key]int32
	courses []bound
	now     time.Time
	rates   [policy.Levels]cost
	writes  rate
	pins    map[[16]byte]policy.Level
	sets    map[[16]byte]int32
	packing map[[16]byte]pack.Measure // as pins and sets by the series of keys; none where it does not pay
	groups  map[[16]byte]int32        // by the series of steps: the first of their numbers
	steps   int64                     // so many numbers are taken
	below   []promotion               // batches on a disk or packed that readers come to
	ahead   int64                     // bytes that are made ready for readers
}

// A bound is a reader with the two epochs that it will read.
type bound struct {
	series, next *Series
	reader       reader
	job          int32
	grouped      bool // others read beside it
}

// maxItems bounds a choice. So does what budgets can hold, a few times over: of
// what comes after that they could save little. Fewer than minItems are no
// burden.
const (
	maxItems   = 1 << 17
	minItems   = 1 << 16
	overBudget = 8
)

// addPresent adds a batch that is here, once, though it may be seen twice, with when a
// reader that is foretold opens it. The cache's lock is held.
func (o *outlook) addPresent(k *batch) {
	if _, known := o.index[k.key]; known || o.full() {
		return
	}
	item := policy.Item{Now: k.level(), Last: o.time.seconds(k.last)}
	item.Wait[policy.Source] = k.took.Seconds()
	item.Bytes[policy.Packed] = k.real
	n := o.add(k.series, k.key, k.size, item)
	if _, at, ok := o.readers.traces.soonest(k.key, o.now); ok {
		o.problem.Uses = append(o.problem.Uses, policy.Use{Item: n, At: o.time.seconds(at)})
	}
}

// full reports whether the batches that are here have all their items: half of
// maxItems, the others are for batches ahead. A batch without an item stays where it is.
func (o *outlook) full() bool { return len(o.problem.Items) >= maxItems/2 }

// add completes an item with what is known of its series.
func (o *outlook) add(s *Series, k Key, size int64, i policy.Item) int32 {
	set, ok := o.sets[k.Series]
	if !ok {
		set = int32(len(o.sets))
		o.sets[k.Series] = set
		if m, pays := o.measure(s, size); pays {
			o.packing[k.Series] = m
		}
	}
	i.Series, i.Job, i.Group, i.Floor = set, -1, -1, o.pins[k.Series]
	describe(&i, size, o.packing[k.Series], &o.rates, o.writes, o.problem.Disk > 0)
	n := int32(len(o.problem.Items))
	o.index[k] = n
	o.problem.Items = append(o.problem.Items, i)
	return n
}

// measure looks up the ratio and the times at which the batches of a series are packed, if that pays.
func (o *outlook) measure(s *Series, size int64) (pack.Measure, bool) {
	readers := 0
	for _, b := range o.courses {
		if b.series.ID == s.ID {
			readers++
		}
	}
	const perMiB = 1 << 20
	return o.packed.measured(s.Dataset, pack.Setting{
		Memory: o.problem.Memory, Dataset: size * int64(s.Steps) * int64(max(1, readers)),
		Below: o.rates[policy.Source].duration(perMiB), Uses: 2,
	})
}

// addFuture adds the steps that readers will open, to the end of the next epoch, as
// far as there are items for them.
func (o *outlook) addFuture() {
	most := o.most()
	for n, b := range o.courses {
		end := b.series.Steps
		if b.next != nil {
			end += b.next.Steps
		}
		share := (most - len(o.problem.Items)) / (len(o.courses) - n)
		for step := b.reader.Pos; step < end && share > 0; step, share = step+1, share-1 {
			o.addUse(&b, step)
		}
	}
	slices.SortFunc(o.problem.Uses, func(a, b policy.Use) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Item, b.Item))
	})
}

// keepPassing keeps memory for what passes through it on its way to readers.
func (o *outlook) keepPassing() {
	used := int64(0)
	for i := range o.problem.Items {
		used += o.problem.Items[i].Bytes[policy.RAM]
	}
	o.problem.Memory -= policy.Passing(o.ahead, used, o.problem.Memory)
}

// most is the number of items that are looked at, those that are here included.
func (o *outlook) most() int {
	size := int64(0)
	for _, b := range o.courses {
		size += meta.WholePages(b.reader.size)
	}
	size /= int64(max(len(o.courses), 1))
	enough := overBudget * (o.problem.Memory + o.problem.Disk) / max(size, 1)
	return int(min(int64(len(o.problem.Items))+max(enough, minItems), maxItems))
}

// addUse adds one step of a reader.
func (o *outlook) addUse(b *bound, step uint64) {
	p, s := b.series, step
	if s >= p.Steps {
		p, s = b.next, s-p.Steps
	}
	k := p.Key(b.reader.rank, s)
	if p.Once && o.pins[k.Series] == policy.Source {
		return
	}
	i, ok := o.index[k]
	if !ok {
		item := policy.Item{Last: -1}
		if o.nvme != nil && o.nvme.Has(k) {
			item.Now = policy.Disk
		}
		i = o.add(p, k, p.Size(b.reader.rank, s), item)
	}
	at := o.time.seconds(b.reader.comes(step, o.now))
	if item := &o.problem.Items[i]; item.Job < 0 {
		item.Job = b.job
		if item.Now == policy.Disk || item.Now == policy.Packed {
			o.below = append(o.below, promotion{p, b.reader.rank, s, at, i})
		}
		if b.grouped {
			item.Group = o.group(p, s)
		}
	}
	o.problem.Uses = append(o.problem.Uses, policy.Use{Item: i, At: at})
}

// group numbers a step: one of its batches alone keeps no reader from waiting.
func (o *outlook) group(s *Series, step uint64) int32 {
	first, ok := o.groups[s.ID]
	if !ok {
		if o.steps+int64(s.Steps) > math.MaxInt32 {
			return -1
		}
		first = int32(o.steps)
		o.groups[s.ID] = first
		o.steps += int64(s.Steps)
	}
	return first + int32(step)
}

// promotions are the batches that a choice wants at a higher level than they are.
func (o *outlook) promotions(levels []policy.Level) []promotion {
	up := slices.DeleteFunc(o.below, func(p promotion) bool { return levels[p.item] <= o.problem.Items[p.item].Now })
	slices.SortStableFunc(up, func(a, b promotion) int { return cmp.Compare(a.at, b.at) })
	return slices.Clone(up[:min(len(up), maxPromotions)])
}
