package plan_test

import (
	"fmt"
	"testing"

	"rankfs/shuffle/plan"
)

// Batches that are chunks have the chunk's name in every epoch and order, and
// are found by it where they are; others have their own.
func TestNamesOfBatches(t *testing.T) {
	chunks := [][]string{{"a"}, {"b"}, {"a", "b"}, {"a"}, {"b"}}
	for _, view := range []string{
		"ranks=2,batch=chunk", "ranks=2,batch=chunk,order=full,seed=3", "ranks=2,batch=chunk,order=full,seed=3,epoch=1",
		"ranks=2,batch=chunk,order=full,seed=3,assign=strict", "ranks=2,batch=2", "ranks=2,batch=2,order=full,seed=3",
	} {
		p := plan.New(viewOf(t, view), version(4, chunks...))
		mustPlace(t, p, on("ab"))
		byChunk := p.ChunksID() != [16]byte{}
		seen := make(map[plan.BatchID]bool)
		for step := range p.Steps() {
			for rank := range p.Cut().Ranks {
				if p.Records(rank, step) == 0 {
					continue
				}
				b := p.Batch(rank, step)
				seen[b] = true
				if r, s, ok := p.Find(b); !ok || r != rank || s != step {
					t.Errorf("%s: batch %d of rank %d is found as %d of %d: %v", view, step, rank, s, r, ok)
				}
				if own := (plan.BatchID{Plan: p.ID(), Rank: rank, Step: step}); (b == own) == byChunk {
					t.Errorf("%s: batch %d of rank %d has the name %v", view, step, rank, b)
				}
			}
		}
		if byChunk && len(seen) != len(chunks) {
			t.Errorf("%s: %d names for %d chunks", view, len(seen), len(chunks))
		}
		if _, _, ok := p.Find(plan.BatchID{Plan: p.ChunksID(), Step: 99}); ok && byChunk {
			t.Errorf("%s: a chunk is found that does not exist", view)
		}
	}
}

// Who reads a chunk is known as soon as somebody asks, before its batch is.
func TestReaderOfAChunk(t *testing.T) {
	for _, view := range []string{"ranks=2,batch=chunk,order=full", "ranks=2,batch=chunk,assign=strict"} {
		p := plan.New(viewOf(t, view), version(4, []string{"a"}, []string{"b"}, []string{"a"}, []string{"b"}))
		mustPlace(t, p, on("ba"))
		reader := make(map[int]uint64)
		for chunk := range 4 {
			rank, ok := p.Reader(chunk)
			if !ok {
				t.Errorf("%s: nobody reads chunk %d", view, chunk)
			}
			reader[chunk] = rank
		}
		for step := range p.Steps() {
			for rank := range p.Cut().Ranks {
				for _, chunk := range chunksOf(t, p, rank, step) {
					if reader[chunk] != rank {
						t.Errorf("%s: rank %d reads chunk %d, want %d", view, rank, chunk, reader[chunk])
					}
				}
			}
		}
	}
}

// Slabs are kept by the id of their plan. So whatever changes a batch changes
// the id: where ranks are, and where replicas were when the source was indexed.
func TestPlansThatDifferHaveOtherNames(t *testing.T) {
	seen := make(map[[16]byte]string)
	for what, chunks := range map[string][][]string{
		"as it was":     {{"a"}, {"b"}, {"c"}, {"a"}},
		"after a while": {{"b"}, {"c"}, {"a"}, {"b"}},
	} {
		for _, hosts := range []string{"abc", "bac", "aab", "abb"} {
			p := plan.New(viewOf(t, "ranks=3,batch=2"), version(6, chunks...))
			mustPlace(t, p, on(hosts))
			name := fmt.Sprint(what, hosts)
			if other, ok := seen[p.ID()]; ok || !p.Placed() {
				t.Errorf("%s has the id of %s", name, other)
			}
			seen[p.ID()] = name
		}
	}
}
