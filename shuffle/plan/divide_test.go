package plan_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
	"rankfs/shuffle/plan/plantest"
)

// Stretches of a few steps are an epoch all the same: each chunk once, each rank
// as many as with assign=strict, and local wherever every stretch can be.
func TestStretches(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := plantest.AnyScene.Draw(r, "scene")
		of := plan.NewVersion(table{s, 3}, sha256.Sum256(fmt.Append(nil, s.Holders, s.Rack)))
		tail := rapid.SampledFrom([]string{"keep", "drop", "pad"}).Draw(r, "tail")
		v := viewOf(t, fmt.Sprintf("ranks=%d,batch=chunk,order=full,tail=%s", len(s.Seats), tail))
		whole, parts := plan.New(v, of), plan.New(v, of)
		mustPlace(t, whole, s.Seats)
		mustPlace(t, parts, s.Seats)
		if !parts.Placed() {
			return
		}
		parts.InStretches(rapid.Uint64Range(1, 4).Draw(r, "steps"))
		seen, read := make(map[int]int), uint64(0)
		for step := range parts.Steps() {
			for rank := range parts.Cut().Ranks {
				a, b := chunksOf(t, whole, rank, step), chunksOf(t, parts, rank, step)
				if len(a) != len(b) {
					r.Fatalf("rank %d has %d chunks in step %d, and %d in stretches", rank, len(a), step, len(b))
				}
				for _, chunk := range b {
					seen[chunk]++
					read++
				}
			}
		}
		want := parts.Steps() * parts.Cut().Global
		if v.Tail == meta.TailKeep {
			want = parts.Cut().N
		}
		if distinct := min(want, parts.Cut().N); read != want || uint64(len(seen)) != distinct {
			r.Fatalf("%d chunks are read, %d of them different, want %d and %d: %v", read, len(seen), want, distinct, seen)
		}
	})
}

// An epoch longer than a stretch, of chunks that are on hosts in turn: as local as
// one that is short, and called otherwise than if it were divided as a whole.
func TestLongEpoch(t *testing.T) {
	p, of, all, seats := longEpoch(t)
	read, local := 0, 0
	for step := range p.Steps() {
		for rank := range p.Cut().Ranks {
			for _, chunk := range chunksOf(t, p, rank, step) {
				read++
				if all[chunk][0] == seats[rank].Host {
					local++
				}
			}
		}
	}
	if read != len(all) || float64(local) < 0.99*float64(read) {
		t.Errorf("%d of %d chunks are read, %d of them local", read, len(all), local)
	}
	if count, _ := p.Stretches(); count != 2 || p.ID() == p.AsAWhole(seats) {
		t.Errorf("%d stretches", count)
	}
	if kept := of.Kept(); kept != 2 {
		t.Errorf("%d stretches are kept", kept)
	}
}

// longEpoch is the plan of an epoch of two stretches, with the holders of its chunks.
func longEpoch(t *testing.T) (p *plan.Plan, of *plan.Version, all [][]string, seats []plan.Seat) {
	hosts := [][]string{{"a"}, {"b"}, {"c"}}
	all = make([][]string, plan.Stretch+10_000)
	for i := range all {
		all[i] = hosts[i%3]
	}
	of = plan.NewVersion(table{plantest.Scene{Holders: all}, 1}, [32]byte{})
	p, seats = plan.New(viewOf(t, "ranks=3,batch=chunk,order=full"), of), on("abc")
	mustPlace(t, p, seats)
	return p, of, all, seats
}

// What a batch is called is known as soon as its stretch is divided, and nothing is
// divided to know it.
func TestNothingIsDividedForWhatIsKnown(t *testing.T) {
	p, of, _, _ := longEpoch(t)
	last := p.Steps() - 1
	for i, step := range []uint64{0, last} {
		if _, ok := p.Known(1, step); ok || of.Kept() != i {
			t.Errorf("step %d is known before it was asked for, or it was divided: %d stretches", step, of.Kept())
		}
		b := p.Key(1, step)
		if known, ok := p.Known(1, step); !ok || known != b || of.Kept() != i+1 {
			t.Errorf("step %d is %v, known %v, %v", step, b, known, ok)
		}
	}
	records := plan.New(viewOf(t, "ranks=3,batch=2"), of)
	if b, ok := records.Known(1, 7); !ok || b != records.Key(1, 7) {
		t.Errorf("%v, %v of a plan that is not divided by chunks", b, ok)
	}
}

// What is kept is bounded by positions and by number; what is used stays.
func TestDivisionsAreForgotten(t *testing.T) {
	of, made := version(1), 0
	get := func(number uint64, positions int) {
		t.Helper()
		err := of.Divide(number, func() (assign.Division, error) {
			made++
			return assign.Contiguous([]int32{int32(positions)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		for i := range uint64(plan.KeptDivisions) {
			get(i, 1)
		}
	}
	if made != plan.KeptDivisions || of.Kept() != plan.KeptDivisions {
		t.Errorf("%d were made, %d are kept", made, of.Kept())
	}
	get(1000, 1)
	get(1, 1)
	if made != plan.KeptDivisions+1 || of.Kept() != plan.KeptDivisions {
		t.Errorf("%d were made, %d are kept", made, of.Kept())
	}
	get(0, 1)
	if made != plan.KeptDivisions+2 {
		t.Error("the one used least recently was kept")
	}
	for i := range uint64(6) {
		get(2000+i, assign.MaxPositions)
	}
	if of.Kept() != plan.KeptPositions/assign.MaxPositions {
		t.Errorf("%d large ones are kept", of.Kept())
	}
}

// Two replicas of each chunk somewhere, as HDFS puts them: each host owns as many
// chunks as its ranks' share is, all of which lie there.
func TestOwnersAreEven(t *testing.T) {
	hosts := []string{"a", "b", "c", "d"}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		var chunks [][]string
		for chunk := range 64 {
			first := chunk / 16 // the host that writes keeps a replica
			other := (first + 1 + r.IntN(3)) % 4
			chunks = append(chunks, []string{hosts[first], hosts[other]})
		}
		owners, err := version(2, chunks...).OwnerHosts(on("aabbccdd"))
		if err != nil {
			t.Fatal(err)
		}
		count := make(map[string]int)
		for chunk, owner := range owners {
			count[owner]++
			if !slices.Contains(chunks[chunk], owner) {
				t.Errorf("seed %d: chunk %d is owned where it is not", seed, chunk)
			}
		}
		for _, host := range hosts {
			if count[host] != 16 {
				t.Errorf("seed %d: owners of %v chunks", seed, count)
			}
		}
	}
}
