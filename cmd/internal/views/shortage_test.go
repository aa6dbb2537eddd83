package views

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rankfs/cache"
	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/fetch/batch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// ofSizes are views of a dataset whose records have these sizes, one file each.
func ofSizes(t *testing.T, view string, ram int64, sizes ...int64) *Views {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index")
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range sizes {
		f := b.AddFile(index.File{Path: "f", Size: size})
		b.BeginChunk()
		if err := b.Add(index.Extent{File: f, Len: size}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit("v1"); err != nil {
		t.Fatal(err)
	}
	k := catalogtest.New(t, 1)
	k.Up()
	return served(t, k, k.Catalog("file:/f?as=files", view, path), ram)
}

// What ranks are said to need together is what their slabs take, in whole pages, of the
// step that needs most, wherever that is and however little the others need.
func TestMemoryOfTheLargestStep(t *testing.T) {
	const KiB, MiB = int64(1 << 10), int64(1 << 20)
	uneven := append(slices.Repeat([]int64{4 * MiB}, 16), slices.Repeat([]int64{64 * KiB}, 144)...)
	turned := slices.Clone(uneven)
	slices.Reverse(turned)
	for _, test := range []struct {
		name, view string
		ram        int64
		sizes      []int64
		said       string
	}{
		{"batches that end within a page", "ranks=7,batch=3,order=none", 20508 * KiB, slices.Repeat([]int64{1000003}, 21),
			"7 ranks on a node, each with a batch of 2930KiB, need 20524KiB together, and there are 20508KiB: mount with --ram 20524KiB or more"},
		{"as much as was advised", "ranks=7,batch=3,order=none", 20524 * KiB, slices.Repeat([]int64{1000003}, 21),
			"7 ranks on a node, each with a batch of 2930KiB, find room in 20524KiB, but not where each opens the next batch before it lets go of the last: close and unmap that first, or mount with --ram 41048KiB or more"},
		{"large files first", "ranks=4,batch=4,order=none", 32 * MiB, uneven,
			"4 ranks on a node, each with a batch of 16MiB, need 64MiB together, and there are 32MiB: mount with --ram 64MiB or more"},
		{"large files last", "ranks=4,batch=4,order=none", 32 * MiB, turned, "need 64MiB together, and there are 32MiB: mount with --ram 64MiB or more"},
		{"large files for one rank", "ranks=4,batch=16,order=none", 32 * MiB, uneven, "each with a batch of up to 64MiB, need 67MiB together"},
		{"a large step and small ones", "ranks=4,batch=4,order=none", 64 * MiB, uneven, "find room in 64MiB, but not where each opens the next batch before it lets go of the last: close and unmap that first, or mount with --ram 65MiB or more"},
		{"a large step and a small one beside it", "ranks=4,batch=4,order=none", 65 * MiB, uneven, ""},
		{"one rank", "ranks=1,batch=4,order=none", 16 * MiB, uneven, ""},
		{"a batch that is too large", "ranks=1,batch=8,order=none", 16 * MiB, uneven,
			"a rank, with a batch of 32MiB, needs 32MiB, and there are 16MiB: mount with --ram 32MiB or more"},
		{"a batch that is too large in some steps", "ranks=1,batch=16,order=none", 16 * MiB, turned,
			"a rank, with a batch of 64MiB, needs 64MiB, and there are 16MiB: mount with --ram 64MiB or more"},
		{"more records than are looked at", "ranks=2,batch=4096,order=none", 16 * MiB, append(slices.Repeat([]int64{4 * KiB}, 8192), slices.Repeat([]int64{1}, 32*8192)...),
			"2 ranks on a node, each with a batch of 16MiB in 8 of 33 steps that were looked at, need 32MiB together"},
		{"a step that is too long to look at", "ranks=2,batch=200000,order=none", 16 * MiB, append([]int64{20 * MiB, 20 * MiB}, slices.Repeat([]int64{1}, 1<<18)...),
			"2 ranks on a node, each with a batch of 20608KiB on the mean, need 41216KiB together"},
	} {
		t.Run(test.name, func(t *testing.T) {
			vs := ofSizes(t, test.view, test.ram, test.sizes...)
			d := vs.dataset(t)
			for range 2 { // the second is remembered
				said := vs.Memory.Warning(d.Default, d.Version)
				if test.said == "" && said != "" || !strings.Contains(said, test.said) {
					t.Errorf("said %q, not %q", said, test.said)
				}
			}
		})
	}
}

// What is said of a view is of its own batches, not of larger ones that another was refused, and
// where all wait for room that ranks hold it is enough for its own.
func TestShortageOfAView(t *testing.T) {
	const MiB = int64(1 << 20)
	vs := ofSizes(t, "ranks=1,batch=8,order=none", 16*MiB, slices.Repeat([]int64{4 * MiB}, 16)...)
	refused, err := vs.Open("d")
	if err != nil {
		t.Fatal(err)
	}
	account := vs.config.Stalls.Open("d", 0)
	if _, err := vs.cache.Open(t.Context(), &account, refused.Batches().series, 0, 0, refused.Batches().Key(0, 0)); !errors.Is(err, meta.ErrNoSpace) {
		t.Fatalf("a batch of 32MiB in 16MiB: %v", err)
	}
	of, large := refused.Of().Version, refused.Asked()
	small, err := large.With("batch=1")
	if err != nil {
		t.Fatal(err)
	}
	large.Epoch++ // of its job
	if said := vs.Memory.ShortageOf(large, of); !strings.Contains(said, "opens of d find no room: a rank, with a batch of 32MiB, needs 32MiB") {
		t.Errorf("of the view that was refused: %q", said)
	}
	if said := vs.Memory.ShortageOf(small, of); said != "" {
		t.Errorf("of another view: %q", said)
	}
	waits := &cache.Shortage{Series: seriesOf(&Batches{Batches: &batch.Batches{Plan: plan.New(small, of.Plans), Version: of}}), Held: 16 * MiB, Size: 4 * MiB}
	if said := vs.Memory.describe(waits, 0); !strings.Contains(said, "opens wait for room: ") || !strings.Contains(said, "--ram 20MiB or more") {
		t.Errorf("of the node: %q", said)
	}
	if said := vs.Memory.describe(waits, 32*MiB); !strings.Contains(said, "--ram 32MiB or more") {
		t.Errorf("of a view that needs more: %q", said)
	}
}
