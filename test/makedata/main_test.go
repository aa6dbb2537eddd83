package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bmatsuo/lmdb-go/lmdb"
	"github.com/cespare/xxhash/v2"
)

// Equal arguments make equal records, and another seed makes others.
func TestDeterministic(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			a, b, other := sums(t, k, name, 1), sums(t, k, name, 1), sums(t, k, name, 2)
			if !bytes.Equal(a, b) {
				t.Error("the same seed gave other records")
			}
			if bytes.Equal(a, other) {
				t.Error("another seed gave the same records")
			}
		})
	}
}

func sums(t *testing.T, k kind, name string, seed uint64) []byte {
	t.Helper()
	dir := t.TempDir()
	c := Corpus{N: 50, Size: 200, Side: 8, Seed: seed}
	if err := write(name, k, c, filepath.Join(dir, "out"), filepath.Join(dir, "sums"), ""); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "sums"))
	if err != nil {
		t.Fatal(err)
	}
	if len(b) != 50*17 {
		t.Fatalf("%d bytes of checksums, want 50 lines of 17", len(b))
	}
	return b
}

// Of keys that are skewed as good as all are in one part, and they differ as others do.
func TestSkew(t *testing.T) {
	const n, parts = 20_000, 8
	for _, skew := range []int{0, parts} {
		of, keys := make([]int, parts), make(map[string]bool)
		c := Corpus{N: n, Size: 100, Seed: 1, Skew: skew}.keyed()
		for i := range n {
			line := c.Value(nil, i)
			key, _, ok := bytes.Cut(line, []byte("\t"))
			if !ok || len(line) != 100 || bytes.IndexByte(line, '\n') != 99 {
				t.Fatalf("line %d is %q", i, line)
			}
			of[xxhash.Sum64(key)%parts]++
			keys[string(key)] = true
		}
		if len(keys) != n {
			t.Errorf("%d keys of %d lines", len(keys), n)
		}
		if least, most := n*99/100, n*992/1000; skew > 0 && (of[0] < least || of[0] > most) {
			t.Errorf("%d lines of %d are in the first part", of[0], n)
		}
		if skew == 0 && (slices.Min(of) < n/parts*9/10 || slices.Max(of) > n/parts*11/10) {
			t.Errorf("parts have %v lines", of)
		}
	}
}

// The second word comes half as often as the first, the fourth a quarter, and so on; each is
// one of many.
func TestText(t *testing.T) {
	counts := make(map[string]int)
	all := 0
	c := Corpus{N: 20_000, Size: 80, Seed: 1}.text()
	for i := range c.N {
		line := c.Value(nil, i)
		if bytes.IndexByte(line, '\n') != len(line)-1 || len(line) < 80 || len(line) > 80+14 {
			t.Fatalf("line %d is %q", i, line)
		}
		for _, w := range bytes.Fields(line) {
			counts[string(w)]++
			all++
		}
	}
	of := slices.Sorted(maps.Values(counts))
	slices.Reverse(of)
	if len(of) < all/10 || len(of) > all/2 {
		t.Errorf("%d words, of which %d are different ones", all, len(of))
	}
	for _, n := range []int{2, 8, 32} {
		if share := float64(of[n-1]) * float64(n) / float64(of[0]); share < 0.5 || share > 2 {
			t.Errorf("the first word comes %d times, the one of rank %d %d times", of[0], n, of[n-1])
		}
	}
}

// The database holds what the checksums say, in key order, however it was
// inserted.
func TestLMDBHoldsTheCorpus(t *testing.T) {
	for _, scattered := range []bool{false, true} {
		t.Run(fmt.Sprintf("scattered=%v", scattered), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "db")
			c := Corpus{N: 2500, Size: 100, MaxSize: 5000, Scattered: scattered}.words()
			var want []uint64
			err := makeLMDB(c, out, func(_, value []byte) error {
				want = append(want, xxhash.Sum64(value))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			got := values(t, out)
			if len(got) != len(want) {
				t.Fatalf("%d records, want %d", len(got), len(want))
			}
			for i, v := range got {
				if binary.LittleEndian.Uint64(v) != uint64(i) || xxhash.Sum64(v) != want[i] {
					t.Fatalf("record %d is another one", i)
				}
			}
		})
	}
}

func values(t *testing.T, path string) (all [][]byte) {
	t.Helper()
	env, err := lmdb.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	if err := env.Open(path, lmdb.Readonly, 0); err != nil {
		t.Fatal(err)
	}
	err = env.View(func(txn *lmdb.Txn) error {
		db, err := txn.OpenRoot(0)
		if err != nil {
			return err
		}
		cursor, err := txn.OpenCursor(db)
		if err != nil {
			return err
		}
		defer cursor.Close()
		for {
			_, v, err := cursor.Get(nil, nil, lmdb.Next)
			if lmdb.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			all = append(all, v)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
