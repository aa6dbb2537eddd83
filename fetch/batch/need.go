package batch

import (
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// A Need is the memory that so many ranks which share it need there together, in whole pages,
// as slabs have them.
type Need struct {
	Bytes   int64  // for the batches of the step that needs most
	Next    int64  // if each opens the batch of the next step while it has the last one
	Largest int64  // bytes of the largest batch, as it is
	Looked  uint64 // steps that were looked at; if that is not all, the mean is the least that counts
	Steps   uint64
}

// maxLooked bounds the records, or chunks, whose sizes are added up for a Need: that
// takes some 50 ms where they are shuffled.
const maxLooked = 1 << 16

// maxNeeded is more than any memory, and has room to be added to itself.
const maxNeeded = 1 << 61

// Need looks what ranks of a view need that sit in blocks of so many. Which rank reads what of
// a step is taken to follow from positions, so nothing is divided for it.
func (v *Version) Need(view meta.View, ranks uint64) Need {
	p := plan.New(view, v.Plans)
	cut := p.Cut()
	c := Need{Steps: p.Steps()}
	if c.Steps == 0 {
		return c
	}
	if length, ok := v.Index.Uniform(); ok && !view.ByChunk() && float64(length)*float64(cut.Global) < maxNeeded {
		whole := c.step(cut.Ranks, ranks, func(rank uint64) int64 { return length * int64(p.Records(rank, 0)) })
		c.follow(whole, whole) // no step is larger than the first
		c.Looked = c.Steps
		return c
	}
	c.Looked = min(c.Steps, maxLooked/max(cut.Global, cut.Ranks))
	var first, last []int64
	for i := range c.Looked {
		now := c.step(cut.Ranks, ranks, func(rank uint64) (bytes int64) {
			_ = v.EachChunk(p, rank, i*(c.Steps/c.Looked), func(_ int, n int64) error { bytes += n; return nil }) // no division can fail
			return bytes
		})
		if i == 0 {
			first = now
		} else {
			c.follow(last, now)
		}
		last = now
	}
	c.follow(last, first) // of the next epoch
	if c.Looked < c.Steps {
		c.Largest = max(c.Largest, v.meanBatch(cut))
		c.Bytes = max(c.Bytes, int64(min(float64(meta.WholePages(v.meanBatch(cut)))*float64(ranks), maxNeeded)))
		c.Next = 2 * c.Bytes
	}
	return c
}

// step adds up what each block of ranks needs for one step.
func (c *Need) step(all, ranks uint64, size func(rank uint64) int64) (blocks []int64) {
	for rank := range all {
		if rank%ranks == 0 {
			blocks = append(blocks, 0)
		}
		n := size(rank)
		blocks[rank/ranks] += meta.WholePages(n)
		c.Largest, c.Bytes = max(c.Largest, n), max(c.Bytes, blocks[rank/ranks])
	}
	return blocks
}

// follow notes what blocks of ranks need that go from one step to another.
func (c *Need) follow(from, to []int64) {
	for i, bytes := range from {
		c.Next = max(c.Next, bytes+to[i])
	}
}

func (v *Version) meanBatch(cut meta.Cut) int64 {
	step := float64(cut.Global)
	if cut.Tail != meta.TailPad {
		step = min(step, float64(cut.N))
	}
	return int64(min(float64(v.Index.Bytes())*(step/float64(cut.N)/float64(cut.Ranks)), maxNeeded))
}
