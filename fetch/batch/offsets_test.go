package batch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/fetch/local"
	"rankfs/meta"
	"rankfs/shuffle/plan"
	"rankfs/test/eventually"
)

// manyLines is the version of a dataset of lines of 2 and 3 bytes.
func manyLines(t *testing.T, n int) *Version {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte(strings.Repeat("a\nbc\n", n/2)), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := local.OpenLines(path)
	if err == nil {
		err = fetch.Build(t.Context(), src, path+".index", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path + ".index")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return &Version{Index: x, Plans: plan.NewVersion(x, [32]byte{})}
}

// A caller that asks for the size or the table of a large batch may leave; what was added up
// until then is kept, and those that stay share the rest of one walk.
func TestMarksAreShared(t *testing.T) {
	const n = 100_000
	c := manyLines(t, n)
	sizes, err := NewSizes()
	if err != nil {
		t.Fatal(err)
	}
	defer sizes.Close()
	v, err := meta.View{Dataset: "d", Ranks: 1}.With("batch=100000,order=full,seed=3")
	if err != nil {
		t.Fatal(err)
	}
	p := &Batches{Plan: plan.New(v, c.Plans), Version: c, Sizes: sizes}
	gone, leave := context.WithCancel(t.Context())
	leave()
	m, done := sizes.marks(p.batch(0, 0))
	for last := 1; last < 10; {
		if _, err := p.SizeFor(gone, 0, 0); !errors.Is(err, context.Canceled) {
			t.Fatalf("the size for a caller that left: %v", err)
		}
		before, whole := m.known()
		if whole || len(before) > last+1 {
			t.Fatalf("%d marks, %v, for a caller that left at once", len(before), whole)
		}
		last = len(before)
	}
	var askers sync.WaitGroup
	for range 8 {
		askers.Go(func() {
			if size, err := p.SizeFor(t.Context(), 0, 0); err != nil || size != n/2*5 {
				t.Errorf("%d bytes, %v", size, err)
			}
		})
	}
	askers.Wait()
	before, whole := m.known()
	if want := n/plan.RecordsAtOnce + 2; !whole || len(before) != want {
		t.Errorf("%d marks, %v, want %d", len(before), whole, want)
	}
	done()
	if sizes.mu.count != m.count() || sizes.mu.order.Len() != 1 {
		t.Errorf("%d marks of %d batches are counted", sizes.mu.count, sizes.mu.order.Len())
	}
}

// A batch of very many records, which any user can ask for by a name, does not hinder opens that
// need the size of another one.
func TestWalksTakeTurns(t *testing.T) {
	c := manyLines(t, 10_000)
	sizes, err := NewSizes()
	if err != nil {
		t.Fatal(err)
	}
	defer sizes.Close()
	batches := func(options string) *Batches {
		v, err := meta.View{Dataset: "d", Ranks: 1}.With(options)
		if err != nil {
			t.Fatal(err)
		}
		return &Batches{Plan: plan.New(v, c.Plans), Version: c, Sizes: sizes}
	}
	asked, leave := context.WithCancel(t.Context())
	var strangers sync.WaitGroup
	defer func() {
		leave()
		strangers.Wait()
	}()
	for i := range cap(sizes.walks) {
		endless := batches(fmt.Sprintf("batch=100000000000,tail=pad,order=full,seed=%d", i))
		m, done := sizes.marks(endless.batch(0, 0))
		strangers.Go(func() {
			defer done()
			if _, err := endless.SizeFor(asked, 0, 0); !errors.Is(err, context.Canceled) {
				t.Errorf("the size of a batch without end: %v", err)
			}
		})
		eventually.True(t, "a batch without end is being added up", func() bool {
			before, _ := m.known()
			return len(before) > 1
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if size, err := batches("batch=10000,order=full").SizeFor(ctx, 0, 0); err != nil || size != 25_000 {
		t.Errorf("%d bytes beside batches without end, %v", size, err)
	}
}

// Any part of a table is that of the whole, for orders and units of all kinds.
func TestPartsOfOffsets(t *testing.T) {
	const n = 20_000
	c := manyLines(t, n)
	sizes, err := NewSizes()
	if err != nil {
		t.Fatal(err)
	}
	defer sizes.Close()
	for _, options := range []string{"batch=20000", "batch=20000,order=full,seed=1", "batch=4096,order=full", "batch=chunk", "batch=7"} {
		v, err := meta.View{Dataset: "d", Ranks: 1}.With(options)
		if err != nil {
			t.Fatal(err)
		}
		p := &Batches{Plan: plan.New(v, c.Plans), Version: c, Sizes: sizes}
		o, err := p.Offsets(t.Context(), 0, 1%p.Steps())
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		at := int64(0)
		if err := p.batch(0, 1%p.Steps()).each(func(r *recordBatch) error {
			for _, record := range r.records {
				want = binary.LittleEndian.AppendUint64(want, uint64(at))
				at += c.Index.Size(record)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want = binary.LittleEndian.AppendUint64(want, uint64(at))
		all := uint64(len(want) / 8)
		for _, part := range [][2]uint64{{0, all}, {0, 1}, {all - 1, 1}, {all - 1, 9}, {all, 1}, {all / 2, all}, {4095, 3}, {4096, 4096}, {8191, 4098}} {
			from, to := min(part[0], all), min(part[0]+part[1], all)
			got, err := o.Append(t.Context(), nil, part[0], part[1])
			if err != nil || string(got) != string(want[8*from:8*to]) {
				t.Errorf("%s: entries %d to %d of %d: %d bytes, %v, or wrong ones", options, from, to, all, len(got), err)
			}
		}
	}
}
