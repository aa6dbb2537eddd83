package system_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The whole of which rank reads what, by plain file calls: every kind of source in
// every order with every tail, cut for different numbers of ranks.
func TestEveryRecordIsReadOnce(t *testing.T) {
	t.Parallel()
	const records, global = 700, 96 // 7 whole steps and a short one
	n := start(t)
	for kind, s := range every(t, records) {
		n.create(kind, s, "--batch", "17")
		for _, order := range []string{"none", "window:50", "full"} {
			for _, tail := range []string{"keep", "drop", "pad"} {
				t.Run(kind+"/"+order+"/"+tail, func(t *testing.T) {
					var one reading
					for _, ranks := range []int{1, 3, 5} {
						view := fmt.Sprintf("%s@ranks=%d,seed=3,order=%s,step=%d,tail=%s", kind, ranks, order, global, tail)
						r := n.readView(t, view)
						holdToSource(t, s, r, order, tail, global)
						if ranks == 1 {
							one = r
						} else if !slices.EqualFunc(r, one, func(a, b step) bool { return sameRecords(a.records(), b.records()) }) {
							t.Errorf("%d ranks have other global batches than one", ranks)
						}
					}
				})
			}
		}
	}
}

func holdToSource(t *testing.T, s source, r reading, order, tail string, global int) {
	t.Helper()
	whole := len(s.records) / global
	short := len(s.records) - whole*global
	unique := r.unique()
	if order == "none" && !sameRecords(unique, s.records[:len(unique)]) {
		t.Errorf("order none: %d records that are not the source's first ones", len(unique))
	}
	if order != "none" && sameRecords(unique, s.records[:len(unique)]) {
		t.Errorf("order %s is that of the source", order)
	}
	want := global
	switch tail {
	case "keep":
		want = short
		fallthrough
	case "pad":
		if len(r) != whole+1 || !sameRecords(sorted(unique), sorted(s.records)) {
			t.Errorf("%d steps hold %d different records, want %d with %d", len(r), len(unique), whole+1, len(s.records))
		}
		last := r[len(r)-1]
		if n := len(last.records()); n != want || last.repeats != want-short {
			t.Errorf("last step has %d records with %d repeats, want %d with %d", n, last.repeats, want, want-short)
		}
		if !sameRecords(last.records()[short:], unique[:want-short]) {
			t.Errorf("the repeats are not the beginning of the order")
		}
		r = r[:whole]
	case "drop":
		if len(r) != whole || len(slices.CompactFunc(sorted(unique), bytes.Equal)) != whole*global {
			t.Errorf("%d steps with %d records, want %d, each record once", len(r), len(unique), whole)
		}
	}
	for k, s := range r {
		if len(s.records()) != global || s.repeats != 0 {
			t.Errorf("step %d has %d records with %d repeats, want %d", k, len(s.records()), s.repeats, global)
		}
		for _, mine := range s.ranks {
			if share := global / len(s.ranks); len(mine) != share && len(mine) != share+1 {
				t.Errorf("step %d: a rank has %d records of %d", k, len(mine), global)
			}
		}
	}
}

// Two machines that have nothing in common but the bytes of the source read
// the same batches, and another epoch has others.
func TestTwoMachinesReadTheSameBytes(t *testing.T) {
	t.Parallel()
	here, there := start(t), start(t)
	for kind, s := range every(t, 500) {
		copied := s
		copied.path = filepath.Join(t.TempDir(), filepath.Base(s.path))
		sh(t, `cp -r "$1" "$2"`, s.path, copied.path)
		copied.uri = string(bytes.Replace([]byte(s.uri), []byte(s.path), []byte(copied.path), 1))
		here.create(kind, s)
		there.create(kind, copied)
		for _, order := range []string{"none", "window:64", "full"} {
			view := fmt.Sprintf("%s@epoch=3,ranks=2,seed=7,order=%s,step=100,tail=pad", kind, order)
			a, b := here.readView(t, view).records(), there.readView(t, view).records()
			if !sameRecords(a, b) {
				t.Errorf("%s: two machines read different bytes", view)
			}
			other := fmt.Sprintf("%s@epoch=4,ranks=2,seed=7,order=%s,step=100,tail=pad", kind, order)
			if c := here.readView(t, other).records(); sameRecords(a, c) != (order == "none") {
				t.Errorf("order %s: epochs 3 and 4 are the same: %v", order, sameRecords(a, c))
			}
		}
	}
}

// A dataset's step stays what it is when NAME@ranks= asks for other ranks;
// batch= is what each of them reads.
func TestOtherRanksKeepGlobalBatches(t *testing.T) {
	t.Parallel()
	n, s := start(t), newLines(t, 300)
	n.create("d", s, "--ranks", "4", "--batch", "10", "--order", "full", "--seed", "1")
	four := n.readView(t, "d")
	for ranks, view := range map[int]string{2: "d@ranks=2", 8: "d@ranks=8", 7: "d@ranks=7"} {
		r := n.readView(t, view)
		if len(r[0].ranks) != ranks || len(r) != len(four) {
			t.Fatalf("%s has %d ranks and %d steps", view, len(r[0].ranks), len(r))
		}
		for k := range r {
			if !sameRecords(r[k].records(), four[k].records()) {
				t.Errorf("%s: step %d is another", view, k)
			}
		}
	}
	if r := n.readView(t, "d@ranks=2,batch=10"); len(r[0].records()) != 20 {
		t.Errorf("batch=10 for 2 ranks has %d records a step, want 20", len(r[0].records()))
	}
}

func TestBatchOfBytes(t *testing.T) {
	t.Parallel()
	n, s := start(t), newFixed(t, 1000, 1024)
	n.create("d", s, "--batch", "64KiB", "--ranks", "2")
	r := n.readView(t, "d")
	if got := len(r[0].ranks[0]); got != 64 || !sameRecords(r.records(), s.records) {
		t.Errorf("64 KiB of records of 1 KiB are %d records", got)
	}
	if r := n.readView(t, "d@step=3B"); len(r[0].records()) != 1 || !sameRecords(r.records(), s.records) {
		t.Errorf("a step of less than a record has %d", len(r[0].records()))
	}
}

// batch=chunk gives each chunk whole to one rank.
func TestBatchOfChunks(t *testing.T) {
	t.Parallel()
	const records, size = 2500, 64 << 10 // 2.5 chunks of 64 MiB
	path := filepath.Join(t.TempDir(), "sparse")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(records*size))
	for i := range uint64(records) {
		_, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, i), int64(i)*size)
		must(t, err)
	}
	n := start(t, "--ram", "256MiB")
	n.create("d", source{uri: fmt.Sprintf("file:%s?as=fixed:%d", path, size)}, "--batch", "chunk", "--ranks", "2")
	seen := make([]int, records)
	for _, s := range n.readView(t, "d@order=full") {
		for _, r := range s.records() {
			seen[binary.LittleEndian.Uint64(r)]++
		}
	}
	if slices.Min(seen) != 1 || slices.Max(seen) != 1 {
		t.Errorf("records are read %d to %d times", slices.Min(seen), slices.Max(seen))
	}
	if steps := list(t, n.path("d", "rank-1")); len(steps) != 2*2 {
		t.Errorf("3 chunks for 2 ranks are %d files a rank, want 2 with their .idx", len(steps))
	}
}

func TestEmptyDatasets(t *testing.T) {
	t.Parallel()
	n := start(t)
	sources := every(t, 0)
	sources["none of that size"] = newFixed(t, 0, 100)
	i := 0
	for kind, s := range sources {
		name := fmt.Sprintf("d%d", i)
		i++
		n.create(name, s, "--ranks", "2")
		for _, options := range []string{"", "@tail=pad", "@order=full,tail=drop", "@batch=chunk", "@batch=1MiB"} {
			if r := n.readView(t, name+options); len(r) != 0 {
				t.Errorf("%s: %s has %d steps", kind, name+options, len(r))
			}
		}
		if got := len(list(t, n.path(name))); got != 5 {
			t.Errorf("%s: %d entries, want two ranks, dataset.json, locality and chunks", kind, got)
		}
	}
}

// Resume is the file name: a daemon that starts anew serves the rest of the
// epoch by the names that the one before it would have served it by.
func TestResumeByNameAfterRestart(t *testing.T) {
	t.Parallel()
	p, s := newNode(t), newLMDB(t, words(600))
	first := p.start()
	first.create("d", s, "--order", "full", "--seed", "9", "--batch", "50")
	const view = "d@epoch=2,ranks=2"
	whole := first.readView(t, view)
	first.stop()

	second := p.start()
	r := newRank(t)
	for k := len(whole) / 2; k < len(whole); k++ {
		for rank := range 2 {
			if got, want := r.batch(second.batch(view, rank, k)), sumOf(bytes.Join(whole[k].ranks[rank], nil)); got != want {
				t.Errorf("rank %d, step %d: other bytes after the restart", rank, k)
			}
		}
	}
}

// A batch that no budget of memory can hold is served from NVMe, and refused
// in so many words without one.
func TestBatchLargerThanRAM(t *testing.T) {
	t.Parallel()
	s := newFixed(t, 40, 1<<20)
	p := newNode(t)
	without := p.start("--ram", "16MiB")
	without.create("d", s, "--batch", "20")
	r := newRank(t)
	if got := r.errno("batch", without.batch("d", 0, 0)); got != "ENOSPC" {
		t.Errorf("20 MiB with a budget of 16: %q, want ENOSPC", got)
	}
	if n := without.logged("open batch", "batch-000000", "20971520", "16777216"); n != 1 {
		t.Errorf("%d lines in the log name the batch, its size and the budget, want 1", n)
	}
	without.stop()

	with := p.start("--ram", "16MiB", "--nvme", p.at+":64MiB")
	for k := range 2 {
		if r.batch(with.batch("d", 0, k)) != sumOf(s.all(20*k, 20*k+20)) {
			t.Errorf("batch %d has other bytes", k)
		}
	}
	if _, _, slabs, _ := with.status().tier("nvme"); slabs != 2 {
		t.Errorf("%d slabs on nvme, want 2", slabs)
	}
}
