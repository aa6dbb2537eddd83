package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
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

// Keys of lines differ, and are spread over parts.
func TestKeyed(t *testing.T) {
	const n, parts = 20_000, 8
	of, keys := make([]int, parts), make(map[string]bool)
	c := Corpus{N: n, Size: 100, Seed: 1}.keyed()
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
	if slices.Min(of) < n/parts*9/10 || slices.Max(of) > n/parts*11/10 {
		t.Errorf("parts have %v lines", of)
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
