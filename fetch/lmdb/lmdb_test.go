package lmdb_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clib "github.com/bmatsuo/lmdb-go/lmdb"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/fetch/lmdb"
	"rankfs/meta"
)

var _ fetch.Source = (*lmdb.Source)(nil)

var ctx = context.Background()

// A record of a database to be made.
type record struct{ key, value []byte }

// makeDB writes records to a new database with the C library.
func makeDB(t testing.TB, path, db string, flags uint, records []record) {
	t.Helper()
	update(t, path, 0, func(txn *clib.Txn) error {
		dbi, err := open(txn, db, flags|clib.Create)
		for _, r := range records {
			if err == nil {
				err = txn.Put(dbi, r.key, r.value, 0)
			}
		}
		return err
	})
}

func open(txn *clib.Txn, db string, flags uint) (clib.DBI, error) {
	if db == "" {
		return txn.OpenRoot(flags)
	}
	return txn.OpenDBI(db, flags)
}

// update runs one write transaction on the database in the directory path.
func update(t testing.TB, path string, flags uint, do func(*clib.Txn) error) {
	t.Helper()
	env, err := clib.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	err = errors.Join(env.SetMapSize(4<<30), env.SetMaxDBs(64))
	if flags&clib.NoSubdir == 0 {
		err = errors.Join(err, os.MkdirAll(path, 0o755))
	}
	if err == nil {
		err = env.Open(path, flags|clib.NoSync, 0o644)
	}
	if err == nil {
		err = env.Update(do)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// numbered is n records, of which size tells the lengths.
func numbered(n int, keyLen int, size func(i int) int) []record {
	records := make([]record, n)
	for i := range records {
		key := bytes.Repeat([]byte{'k'}, keyLen)
		binary.BigEndian.PutUint32(key[keyLen-4:], uint32(i))
		records[i] = record{key, fill(uint64(i), size(i))}
	}
	return records
}

// fill is n bytes that no other seed has.
func fill(seed uint64, n int) []byte {
	b := make([]byte, 0, n+8)
	for i := uint64(0); len(b) < n; i++ {
		b = binary.LittleEndian.AppendUint64(b, (seed+1)*0x9e3779b97f4a7c15^i)
	}
	return b[:n]
}

func fixed(n int) func(int) int { return func(int) int { return n } }

// A shape is a database that a user might have.
type shape struct {
	name    string
	db      string
	records []record
	made    func(t testing.TB, path string, s shape)
}

func plain(t testing.TB, path string, s shape) { makeDB(t, path, s.db, 0, s.records) }

func shapes() []shape {
	mixed := func(i int) int { return []int{0, 1, 100, 2000, 2040, 4080, 4081, 9000}[i%8] }
	return []shape{
		{"empty", "", nil, plain},
		{"one", "", numbered(1, 4, fixed(5)), plain},
		{"inline", "", numbered(500, 8, fixed(20)), plain},
		{"overflow", "", numbered(20, 8, fixed(5000)), plain},
		{"mixed", "", numbered(64, 8, mixed), plain},
		{"deep", "", numbered(400, 500, fixed(3)), plain},
		{"empty values", "", numbered(30, 4, fixed(0)), plain},
		{"named", "train", numbered(50, 8, mixed), func(t testing.TB, path string, s shape) {
			makeDB(t, path, "test", 0, numbered(3, 4, fixed(9)))
			makeDB(t, path, "train", 0, s.records)
			makeDB(t, path, "val", 0, nil)
		}},
		{"named empty", "val", nil, func(t testing.TB, path string, s shape) {
			makeDB(t, path, "train", 0, numbered(3, 4, fixed(9)))
			makeDB(t, path, "val", 0, nil)
		}},
		{"deleted", "", numbered(60, 8, mixed)[10:], func(t testing.TB, path string, s shape) {
			makeDB(t, path, "", 0, numbered(300, 8, mixed))
			update(t, path, 0, func(txn *clib.Txn) error {
				dbi, err := txn.OpenRoot(0)
				for i, r := range numbered(300, 8, mixed) {
					if err == nil && (i < 10 || i >= 60) {
						err = txn.Del(dbi, r.key, nil)
					}
				}
				return err
			})
		}},
	}
}

// attach scans a source and attaches it to the index made of it.
func attach(t testing.TB, s *lmdb.Source) (*index.Index, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index")
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Abort()
	fingerprint, err := s.Scan(ctx, b, func(done, total int64) {
		if done < 0 || done > total {
			t.Errorf("progress of %d in %d", done, total)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := b.Commit(fingerprint); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x, s.Attach(ctx, x, fingerprint)
}

// serve opens, scans and attaches, which has to succeed.
func serve(t testing.TB, path, db string, holds *lmdb.Holds) (*lmdb.Source, *index.Index) {
	t.Helper()
	s, err := lmdb.Open(path, db, holds)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	x, err := attach(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return s, x
}

// readAll reads every record in one request.
func readAll(s *lmdb.Source, x *index.Index) ([]byte, error) {
	extents := make([]index.Extent, x.Records())
	for i := range extents {
		extents[i] = x.Extent(uint64(i))
	}
	dst := make([]byte, x.Bytes())
	err := s.Read(ctx, extents, dst)
	return dst, err
}

func concat(records []record) []byte {
	var all []byte
	for _, r := range records {
		all = append(all, r.value...)
	}
	return all
}

func TestReadBack(t *testing.T) {
	for _, row := range shapes() {
		t.Run(row.name, func(t *testing.T) {
			path := t.TempDir()
			row.made(t, path, row)
			s, x := serve(t, path, row.db, new(lmdb.Holds))
			if err := s.Unheld(); err != nil {
				t.Error(err)
			}
			if x.Records() != uint64(len(row.records)) {
				t.Fatalf("%d records, want %d", x.Records(), len(row.records))
			}
			got, err := readAll(s, x)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, concat(row.records)) {
				t.Error("other bytes than were put")
			}
			if err := s.Check(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestChunks(t *testing.T) {
	path := t.TempDir()
	makeDB(t, path, "", 0, numbered(150, 8, fixed(1<<20)))
	_, x := serve(t, path, "", nil)
	if x.Chunks() != 3 {
		t.Fatalf("%d chunks of 150 MiB", x.Chunks())
	}
	for i := range x.Chunks() {
		if c := x.Chunk(i); i < 2 && (c.Bytes < 64<<20 || c.Bytes > 200<<20) {
			t.Errorf("chunk %d has %d bytes", i, c.Bytes)
		}
	}
}

func TestPlaces(t *testing.T) {
	records := numbered(10, 8, fixed(3000))
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "set.lmdb")
	makeDB(t, dir, "", 0, records)
	update(t, file, clib.NoSubdir, func(txn *clib.Txn) error {
		dbi, err := txn.OpenRoot(0)
		for _, r := range records {
			err = errors.Join(err, txn.Put(dbi, r.key, r.value, 0))
		}
		return err
	})
	for name, path := range map[string]string{
		"directory": dir, "file of a directory": filepath.Join(dir, "data.mdb"), "single file": file,
	} {
		t.Run(name, func(t *testing.T) {
			s, x := serve(t, path, "", new(lmdb.Holds))
			if err := s.Unheld(); err != nil {
				t.Error(err)
			}
			if got, err := readAll(s, x); err != nil || !bytes.Equal(got, concat(records)) {
				t.Errorf("other bytes, %v", err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	few := numbered(3, 4, fixed(9))
	rows := []struct {
		name, db string
		made     func(path string)
		is       error
		says     string
	}{
		{"no such name", "tain", func(p string) { makeDB(t, p, "train", 0, few) }, meta.ErrNotExist, `"train"`},
		{"no names at all", "train", func(p string) { makeDB(t, p, "", 0, few) }, meta.ErrNotExist, "no named databases"},
		{"no name given", "", func(p string) {
			for i := range 20 {
				makeDB(t, p, fmt.Sprintf("part-%02d", i), 0, few)
			}
		}, meta.ErrInvalid, `"part-15"] and more; add ?db=NAME`},
		{"duplicates", "", func(p string) { makeDB(t, p, "", clib.DupSort, few) }, meta.ErrInvalid, "DUPSORT"},
		{"named duplicates", "d", func(p string) { makeDB(t, p, "d", clib.DupSort|clib.DupFixed, few) }, meta.ErrInvalid, "DUPSORT"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			path := t.TempDir()
			row.made(path)
			s, err := lmdb.Open(path, row.db, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = attach(t, s)
			if !errors.Is(err, row.is) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	path := t.TempDir()
	makeDB(t, path, "", 0, numbered(10, 8, fixed(5000)))
	s, x := serve(t, path, "", nil)
	size, e := x.File(0).Size, x.Extent(0)
	rows := []struct {
		name string
		e    index.Extent
		room int64
		is   error
	}{
		{"other file", index.Extent{File: 1, Off: e.Off, Len: e.Len}, e.Len, meta.ErrCorrupt},
		{"before", index.Extent{Off: -1, Len: 1}, 1, meta.ErrCorrupt},
		{"past the end", index.Extent{Off: size, Len: 1}, 1, meta.ErrCorrupt},
		{"sum overflows", index.Extent{Off: 1<<63 - 1, Len: 1<<63 - 1}, 1, meta.ErrCorrupt},
		{"negative", index.Extent{Off: 100, Len: -1}, 1, meta.ErrCorrupt},
		{"longer than its pages", index.Extent{Off: e.Off, Len: 9000}, 9000, meta.ErrCorrupt},
		{"not overflow pages", index.Extent{Off: 16, Len: 8}, 8, meta.ErrCorrupt},
		{"room left", e, e.Len + 1, meta.ErrInvalid},
		{"room short", e, e.Len - 1, meta.ErrInvalid},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if err := s.Read(ctx, []index.Extent{row.e}, make([]byte, row.room)); !errors.Is(err, row.is) {
				t.Errorf("got %v", err)
			}
		})
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Read(stopped, []index.Extent{e}, make([]byte, e.Len)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}
