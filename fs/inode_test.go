package fs

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"rankfs/meta"
)

// Every file of a view has a number of its own, and the number says which file
// it is; the next view's begin where these end.
func TestInodeNumbers(t *testing.T) {
	var v views
	v.init()
	end := uint64(inoViews)
	for i, s := range []View{{Ranks: 1, Steps: 1}, {Ranks: 3, Steps: 7}, {Ranks: 5}, {Ranks: 1, Steps: 1000}} {
		d, _, err := v.add(fmt.Sprint("d", i), s, 0, time.Now())
		if err != nil || d.base != end {
			t.Fatalf("view %d begins at %d (%v), want %d", i, d.base, err, end)
		}
		n, _ := files(s.Ranks, s.Steps)
		seen := make(map[string]bool)
		for ino := d.base; ino < d.base+n; ino++ {
			one, ok := v.byIno(ino)
			if !ok || one.dir != d || one.ino() != ino {
				t.Fatalf("number %d is %+v, %v", ino, one, ok)
			}
			parent := node{dir: d}
			switch one.kind {
			case kindView:
				continue
			case kindQueue, kindBatch, kindOffsets:
				parent = node{dir: d, kind: kindRank, rank: one.rank}
			}
			if found, ok := parent.child(one.name()); !ok || found != one {
				t.Fatalf("%s: found %+v, want %+v", one.path(), found, one)
			}
			if seen[one.path()] {
				t.Fatalf("%s stands twice", one.path())
			}
			seen[one.path()] = true
		}
		if want := int(3 + 2*s.Ranks + 2*s.Ranks*s.Steps); len(seen) != want {
			t.Fatalf("%d files and directories in view %d, want %d", len(seen), i, want)
		}
		end = d.base + n
	}
	for _, ino := range []uint64{0, 1, inoViews - 1, end, math.MaxUint64} {
		if n, ok := v.byIno(ino); ok {
			t.Errorf("number %d is %+v, want nothing", ino, n)
		}
	}
}

func TestNamesHaveOneSpelling(t *testing.T) {
	d := &viewDir{View: View{Ranks: 12, Steps: 2_000_000}}
	rank := node{dir: d, kind: kindRank, rank: 3}
	for _, row := range []struct {
		in    node
		name  string
		there bool
	}{
		{node{dir: d}, "rank-0", true}, {node{dir: d}, "rank-11", true}, {node{dir: d}, "rank-12", false},
		{node{dir: d}, "rank-00", false}, {node{dir: d}, "rank-", false}, {node{dir: d}, "rank--1", false},
		{node{dir: d}, "rank-+1", false}, {node{dir: d}, "rank-18446744073709551616", false}, {node{dir: d}, "batch-000000", false},
		{rank, "batch-000000", true}, {rank, "batch-1999999", true}, {rank, "batch-1999999.idx", true},
		{rank, "batch-2000000", false}, {rank, "batch-0", false}, {rank, "batch-0000000", false},
		{rank, "batch-000000.idx.idx", false}, {rank, "batch-.idx", false}, {rank, ".idx", false}, {rank, "", false},
	} {
		if n, ok := row.in.child(row.name); ok != row.there || ok && n.name() != row.name {
			t.Errorf("%q: %+v, %v, want there: %v", row.name, n, ok, row.there)
		}
	}
}

// However many views strangers look up, the table stays small, numbers are
// not used twice, and what is read from stays.
func TestViewsAreBounded(t *testing.T) {
	var v views
	v.init()
	now := time.Now()
	held, _, _ := v.add("held", View{Ranks: 2, Steps: 2}, 0, now)
	v.hold(held, 1, now)
	read, _, _ := v.add("read", View{Ranks: 2, Steps: 2}, 0, now)
	v.hold(read, 1, now)
	v.hold(read, -1, now)
	last := uint64(0)
	for i := range 5 * maxViews {
		d, gone, err := v.add(fmt.Sprint("stranger-", i), View{Ranks: 4, Steps: 4}, 0, now)
		if err != nil || d.base <= last {
			t.Fatalf("view %d at %d after %d: %v", i, d.base, last, err)
		}
		if last = d.base; gone == held || gone == read {
			t.Fatalf("%s had to go for a stranger", gone.name)
		}
		if v.len() > maxViews {
			t.Fatalf("%d views", v.len())
		}
	}
	if _, ok := v.byIno(held.base); !ok || v.byName("read") != read {
		t.Error("a view in use is gone")
	}
	if _, _, err := v.add("vast", View{Ranks: meta.MaxRanks, Steps: math.MaxUint64 / 4}, 0, now); err == nil {
		t.Error("a view with more files than there are numbers was taken")
	}
}

func TestDropDataset(t *testing.T) {
	var v views
	v.init()
	for _, name := range []string{"a", "a@epoch=1", "b"} {
		dataset, _, _ := meta.SplitView(name)
		v.add(name, View{Dataset: dataset, Ranks: 1}, 0, time.Now())
	}
	if gone := v.dropDataset("a"); len(gone) != 2 || v.len() != 1 || v.byName("b") == nil {
		t.Errorf("%d dropped, %d left", len(gone), v.len())
	}
}

// A renewed is a catalog whose dataset is refreshed, and dropped, while its view is looked up.
type renewed struct {
	Catalog
	tree *Tree
	now  string
}

func (r *renewed) View(string) (View, error) {
	v := View{Dataset: "a", Ranks: 1, Steps: uint64(len(r.now))}
	if r.now == "old" {
		r.now = "newer"
		r.tree.Drop("a")
	}
	return v, nil
}

// A name never means what was dropped while it was looked up: nothing would drop that again.
func TestDropWhileAViewIsLookedUp(t *testing.T) {
	c := &renewed{now: "old"}
	c.tree = New(Config{Catalog: c})
	d, err := c.tree.view("a")
	if err != nil || d.Steps != uint64(len("newer")) {
		t.Errorf("it is the view of %d steps that was dropped (%v)", d.Steps, err)
	}
}

// A table read in parts of any size is the same text.
func TestTableInParts(t *testing.T) {
	table := Table{Lines: 50, Width: 9, Append: func(_ context.Context, dst []byte, i uint64) ([]byte, error) {
		return fmt.Appendf(dst, "line %03d\n", i), nil
	}}
	whole, err := table.read(t.Context(), nil, 0, 1<<20)
	if err != nil || len(whole) != 450 {
		t.Fatalf("%d bytes, %v", len(whole), err)
	}
	for range 1000 {
		from, n := rand.IntN(500), rand.IntN(100)
		got, _ := table.read(t.Context(), make([]byte, 0, n), uint64(from), n)
		want := whole[min(from, 450):min(from+n, 450)]
		if string(got) != string(want) {
			t.Fatalf("%d bytes from %d: %q, want %q", n, from, got, want)
		}
	}
}
