package order_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/shuffle/order"
)

var update = flag.Bool("update", false, "rewrite testdata and the table of docs/order.md")

func TestEveryRecordStandsOnce(t *testing.T) {
	orders := []string{"none", "full", "window:2", "window:3", "window:15", "window:16", "window:32", "window:47", "window:299", "window:1000"}
	for _, name := range orders {
		t.Run(name, func(t *testing.T) {
			for n := range uint64(301) {
				checkBijection(t, order.New(parse(t, name), n, n, n+1), n)
			}
		})
	}
}

func TestEveryRecordStandsOnceAtRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 20_000).Draw(t, "n")
		kind := anyOrder(n+2).Draw(t, "order")
		seed, epoch := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "epoch")
		checkBijection(t, order.New(kind, n, seed, epoch), n)
	})
}

func TestPositionUndoesAtForAnyN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(
			rapid.Uint64Range(1, 1<<63),
			rapid.Uint64Range(1<<63-5, 1<<63),
			rapid.Custom(aroundSquare),
		).Draw(t, "n")
		kind := anyOrder(min(n+2, meta.MaxBatch)).Draw(t, "order")
		seed, epoch := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "epoch")
		o := order.New(kind, n, seed, epoch)
		for _, p := range []uint64{0, n / 2, n - 1, rapid.Uint64Range(0, n-1).Draw(t, "position")} {
			record := o.At(p)
			if record >= n {
				t.Fatalf("At(%d) = %d, of %d records", p, record, n)
			}
			if back := o.Position(record); back != p {
				t.Fatalf("Position(At(%d)) = %d", p, back)
			}
		}
	})
}

// aroundSquare draws an n where the two digits of the network are nearly full.
func aroundSquare(t *rapid.T) uint64 {
	root := rapid.Uint64Range(2, 3037000499).Draw(t, "root")
	return root*root + rapid.Uint64Range(0, 2).Draw(t, "more") - 1
}

func anyOrder(maxWindow uint64) *rapid.Generator[meta.Order] {
	return rapid.OneOf(
		rapid.Just(meta.Order{Kind: meta.OrderFull}),
		rapid.Map(rapid.Uint64Range(2, maxWindow), func(w uint64) meta.Order {
			return meta.Order{Kind: meta.OrderWindow, Window: w}
		}),
	)
}

func checkBijection(t interface{ Fatalf(string, ...any) }, o order.Order, n uint64) {
	seen := make([]bool, n)
	for p := range n {
		record := o.At(p)
		if record >= n || seen[record] {
			t.Fatalf("n=%d: At(%d) = %d, out of range or a second time", n, p, record)
		}
		seen[record] = true
		if back := o.Position(record); back != p {
			t.Fatalf("n=%d: Position(At(%d)) = %d", n, p, back)
		}
	}
}

func TestNoneIsTheSourcesOrder(t *testing.T) {
	o := order.New(meta.Order{}, math.MaxUint64, 7, 9)
	for _, p := range []uint64{0, 1, math.MaxUint64 - 1} {
		if o.At(p) != p || o.Position(p) != p {
			t.Errorf("At(%d) = %d, Position = %d", p, o.At(p), o.Position(p))
		}
	}
}

func TestWindowOfEverythingIsFull(t *testing.T) {
	for _, w := range []uint64{1000, 1001, meta.MaxBatch} {
		windowed := order.New(meta.Order{Kind: meta.OrderWindow, Window: w}, 1000, 7, 9)
		if windowed != order.New(meta.Order{Kind: meta.OrderFull}, 1000, 7, 9) {
			t.Errorf("window:%d of 1000 records is not full", w)
		}
	}
}

func TestPositionOutsideTheEpochPanics(t *testing.T) {
	for _, name := range []string{"none", "full", "window:3"} {
		for _, n := range []uint64{0, 10} {
			o := order.New(parse(t, name), n, 1, 2)
			for what, call := range map[string]func(uint64) uint64{"At": o.At, "Position": o.Position} {
				func() {
					defer func() {
						if recover() == nil {
							t.Errorf("%s of %d records: %s(%d) does not panic", name, n, what, n)
						}
					}()
					call(n)
				}()
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for _, name := range []string{"none", "full", "window:1000"} {
		kind := parse(t, name)
		n := testing.AllocsPerRun(100, func() {
			o := order.New(kind, 1e6, 1, 2)
			sink += o.At(12345) + o.Position(54321)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// The orders are frozen: a job that resumes after an upgrade must find the
// records where they were. If this fails, the change is wrong, not the file;
// -update is for adding lines.
func TestOrdersAreFrozen(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{"none", "full", "window:2", "window:40", "window:1000"} {
		for _, n := range []uint64{1, 2, 3, 10, 255, 256, 1000, 1281167, 1 << 40, 1 << 63} {
			for _, key := range [][2]uint64{{0, 0}, {0, 1}, {1, 0}, {math.MaxUint64, 12}} {
				o := order.New(parse(t, name), n, key[0], key[1])
				fmt.Fprintf(&b, "%s n=%d seed=%d epoch=%d:", name, n, key[0], key[1])
				for p := range min(n, 10) {
					fmt.Fprintf(&b, " %d", o.At(p))
				}
				fmt.Fprintf(&b, " .. %d\n", o.At(n-1))
			}
		}
	}
	checkGolden(t, filepath.Join("testdata", "orders.golden"), b.String())
}

func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("%s:%d: got\n%s\nwant\n%s", path, i+1, g[i], w[i])
		}
	}
	t.Fatalf("%s: got %d lines, want %d", path, len(g), len(w))
}
