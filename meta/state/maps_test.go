package state_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta/state"
)

// A stage's maps are what a plain list would be after any changes; and a reader that got them
// before has those of then.
func TestMapsAreAList(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := state.NewMapList()
		model := make(map[uint64]state.Commit)
		type seen struct {
			maps state.Maps
			want []state.Commit
		}
		var before []seen
		look := func() {
			var want []state.Commit
			for _, one := range model {
				want = append(want, one)
			}
			slices.SortFunc(want, func(a, b state.Commit) int { return int(a.Map) - int(b.Map) })
			before = append(before, seen{c.Maps(), want})
		}
		numbers := rapid.Uint64Range(0, 1<<rapid.Uint64Range(4, 12).Draw(r, "bits")).Draw
		for round := range rapid.IntRange(1, 8).Draw(r, "rounds") {
			rising, first := rapid.Bool().Draw(r, "rising"), numbers(r, "first")
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
			drops := rapid.IntRange(0, 4).Draw(r, "drops")
			most := numbers(r, "most") + 1
			for i := range rapid.Uint64Range(0, 800).Draw(r, "changes") {
				number := random.Uint64N(most)
				if rising {
					number = first + i
				}
				if random.IntN(4) < drops {
					c.Drop(number)
					delete(model, number)
					continue
				}
				one := state.Commit{Map: number, Sum: random.Uint64(), Name: fmt.Sprint(round)}
				c.Set(one)
				model[number] = one
			}
			if rapid.Bool().Draw(r, "read") {
				look()
			}
			if rapid.Bool().Draw(r, "snapshot") {
				snapshot(r, c.Machine)
			}
		}
		look()
		for number := range uint64(1 << 12) {
			if got, ok := c.Get(number); fmt.Sprint(got) != fmt.Sprint(model[number]) || ok != (model[number].Name != "") {
				r.Fatalf("map %d is %+v, want %+v", number, got, model[number])
			}
		}
		for _, one := range before {
			checkMaps(r, one.maps, one.want)
			from, to := numbers(r, "from"), numbers(r, "to")
			checkMaps(r, one.maps.Between(from, to), slices.DeleteFunc(one.want, func(c state.Commit) bool { return c.Map < from || c.Map > to }))
		}
	})
}

func checkMaps(r *rapid.T, maps state.Maps, want []state.Commit) {
	if maps.Len() != len(want) {
		r.Fatalf("there are %d maps, want %d", maps.Len(), len(want))
	}
	n := 0
	for i, got := range maps.All() {
		if i != n || fmt.Sprint(got) != fmt.Sprint(want[i]) || fmt.Sprint(maps.At(i)) != fmt.Sprint(got) {
			r.Fatalf("the map at %d is %+v, and by its number %+v, want %+v", i, got, maps.At(i), want[i])
		}
		n++
	}
	if n != len(want) {
		r.Fatalf("%d maps were gone through, want %d", n, len(want))
	}
}

// Maps that come nearly in their order fill their pages, and few that are left are on few.
func TestMapsFillTheirPages(t *testing.T) {
	const maps, near = 64 * state.PageSize, 32
	c := state.NewMapList()
	for first := uint64(0); first < maps; first += near {
		for _, i := range rand.Perm(near) {
			c.Set(state.Commit{Map: first + uint64(i)})
		}
	}
	if n := c.Pages(); n > 64*5/4 {
		t.Errorf("%d maps are on %d pages of %d", maps, n, state.PageSize)
	}
	for number := range uint64(maps) {
		if number%64 != 0 {
			c.Drop(number)
		}
	}
	if n := c.Pages(); n > 4 {
		t.Errorf("%d maps that are left are on %d pages", maps/64, n)
	}
}

// With a reader between any two changes, and snapshots, a change copies one page and the table
// of pages, however many maps there are.
func TestAChangeCopiesAPage(t *testing.T) {
	c, machine := manyMaps(t, state.MaxCommits)
	perChange := func(between func()) uint64 {
		const changes = 256
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range changes {
			between()
			c.do(signedBy(other, &state.DropMap{StageName: stageName, Map: uint64(i * 1021 % state.MaxCommits), Sum: 1}))
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / changes
	}
	for name, between := range map[string]func(){
		"a reader":   func() { machine.Commits(stageNumber) },
		"a snapshot": func() { snapshot(t, machine) },
	} {
		// A page has 24 KiB, a table 8, what a reader has of it 8 more, a command 4.
		if n := perChange(between); n > 128<<10 {
			t.Errorf("a change after %s takes %d bytes", name, n)
		}
	}
}

// manyMaps is a stage with as many maps.
func manyMaps(t testing.TB, n uint64) (*cluster, *state.Machine) {
	c := pooled(t, "parts=1 copies=1")
	for first := uint64(0); first < n; first += state.MaxCommitMaps {
		c.do(batchOf(other, some(first, min(n-first, state.MaxCommitMaps))...))
	}
	return c, c.m
}

func some(first, n uint64) []state.Commit {
	all := make([]state.Commit, n)
	for i := range all {
		all[i] = state.Commit{Map: first + uint64(i), Sum: 1}
	}
	return all
}

// Readers go on, by maps that they have asked for and in a snapshot, while maps are committed
// and dropped, and see each as it was then.
func TestMapsAreReadWhileTheyChange(t *testing.T) {
	const first, more = 1000, 2000
	c, machine := manyMaps(t, first)
	var readers sync.WaitGroup
	ended := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				maps := machine.Commits(stageNumber)
				n, lost := 0, 0
				for i, one := range maps.All() {
					if one.Map != uint64(i) || maps.At(i).Map != one.Map {
						t.Errorf("map %d is at %d", one.Map, i)
						return
					}
					if n++; len(one.Nodes) == 0 {
						lost++
					}
				}
				if n != maps.Len() || n < first || lost != n-first && lost != max(0, n-first-1) {
					t.Errorf("%d maps of %d, of which %d are lost", n, maps.Len(), lost)
					return
				}
				select {
				case <-ended:
					return
				default:
				}
			}
		})
	}
	for i := range uint64(more) {
		c.do(batchOf(other, state.Commit{Map: first + i, Sum: 1}))
		if i%256 == 0 {
			s := snapshot(t, machine)
			readers.Go(func() {
				var b bytes.Buffer
				_, err := s.WriteTo(&b)
				restored, damage := state.Read(&b)
				if err != nil || damage != nil || restored.Commits(stageNumber).Len() != int(first+i+1) {
					t.Errorf("a snapshot of %d maps: %v, %v", first+i+1, err, damage)
				}
			})
		}
		c.do(signedBy(other, &state.DropMap{StageName: stageName, Map: i, Sum: 1}))
	}
	close(ended)
	readers.Wait()
}

// BenchmarkMaps is a commit to a stage that has so many maps, with a reader of all before each,
// with a snapshot, and without.
func BenchmarkMaps(b *testing.B) {
	for _, n := range []uint64{1 << 10, 1 << 14, state.MaxCommits - 1} {
		for _, kind := range []string{"alone", "read", "snapshot"} {
			b.Run(fmt.Sprint(n, "/", kind), func(b *testing.B) {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				c, machine := manyMaps(b, n)
				runtime.GC()
				runtime.ReadMemStats(&after)
				keep := &state.KeepCopy{StageName: stageName, Node: hostile, Sum: 1}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					switch kind {
					case "read":
						machine.Commits(stageNumber)
					case "snapshot":
						snapshot(b, machine)
					}
					keep.Map, keep.Has = uint64(i)*1021%n, uint64(i)/n%2 == 0
					c.do(signedBy(hostile, keep))
				}
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
			})
		}
	}
}
