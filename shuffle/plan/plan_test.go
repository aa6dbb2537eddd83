package plan_test

import (
	"fmt"
	"testing"

	"rankfs/meta"
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
		seen := make(map[meta.Key]bool)
		for step := range p.Steps() {
			for rank := range p.Cut().Ranks {
				if p.Records(rank, step) == 0 {
					continue
				}
				b := p.Key(rank, step)
				seen[b] = true
				if r, s, ok := p.Find(b); !ok || r != rank || s != step {
					t.Errorf("%s: batch %d of rank %d is found as %d of %d: %v", view, step, rank, s, r, ok)
				}
				if own := (meta.Key{Series: p.ID(), Rank: rank, Step: step}); (b == own) == byChunk {
					t.Errorf("%s: batch %d of rank %d has the name %v", view, step, rank, b)
				}
			}
		}
		if byChunk && len(seen) != len(chunks) {
			t.Errorf("%s: %d names for %d chunks", view, len(seen), len(chunks))
		}
		if _, _, ok := p.Find(meta.Key{Series: p.ChunksID(), Step: 99}); ok && byChunk {
			t.Errorf("%s: a chunk is found that does not exist", view)
		}
	}
}

// Which rank reads a chunk is known as soon as it is asked for, before its batch is.
func TestReaderOfAChunk(t *testing.T) {
	for _, view := range []string{"ranks=2,batch=chunk,order=full", "ranks=2,batch=chunk,assign=strict"} {
		p := plan.New(viewOf(t, view), version(4, []string{"a"}, []string{"b"}, []string{"a"}, []string{"b"}))
		mustPlace(t, p, on("ba"))
		reader := make(map[int]uint64)
		for chunk := range 4 {
			rank, ok := p.Reader(chunk)
			if !ok {
				t.Errorf("%s: no rank reads chunk %d", view, chunk)
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

// Slabs on disks and in other nodes' caches are found by these names: those of a
// release are those of the one before.
func TestNamesStay(t *testing.T) {
	for view, want := range map[string][2]string{ // unplaced, and placed
		"ranks=2,batch=chunk":                                    {"4e8a2b881f231e0a59705c3f76b6d4a3", "f144005720f4055d04aaa0e8b100d038"},
		"ranks=2,batch=chunk,order=full,seed=3,epoch=1":          {"3f03d68a8f6af75d26ffb278777415be", "57bc05496039ee6fe7a4c86b0b140c24"},
		"ranks=2,batch=chunk,order=full,seed=3,assign=strict":    {"5f01b58e84570b275fde83e700a31741", "5f01b58e84570b275fde83e700a31741"},
		"ranks=2,batch=2":                                        {"814196d50ce2213e049d0873510dff8a", "135e6924acd32f2ff476d22c7f357c49"},
		"ranks=2,batch=2,order=window:9,seed=3,tail=pad,epoch=1": {"081052f122a254bb2d0f5d44da138a2a", "34da99af406140d506589ab538d02f0f"},
	} {
		p := plan.New(viewOf(t, view), version(4, []string{"a"}, []string{"b"}, []string{"a", "b"}, []string{"a"}, []string{"b"}))
		before := p.ID()
		mustPlace(t, p, on("ab"))
		if got := [2]string{fmt.Sprintf("%x", before), fmt.Sprintf("%x", p.ID())}; got != want {
			t.Errorf("%q: {%q, %q},", view, got[0], got[1])
		}
	}
	if got := fmt.Sprintf("%x", plan.OfChunks(version(4, []string{"a"})).ID()); got != "86550ac89ada3a90a36349fbb2de0f64" {
		t.Errorf("chunks are called %s", got)
	}
}
