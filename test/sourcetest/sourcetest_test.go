package sourcetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clib "github.com/bmatsuo/lmdb-go/lmdb"
	"golang.org/x/sys/unix"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/fetch/lmdb"
	"rankfs/meta"
	"rankfs/test/sourcetest"
)

func TestLines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var lines [][]byte
	for range 3000 {
		line := bytes.Repeat([]byte{byte('a' + r.IntN(26))}, r.IntN(200))
		lines = append(lines, append(line, "\r\n"[r.IntN(2):]...))
	}
	lines = append(lines, bytes.Repeat([]byte("long "), 1<<18), []byte("\n"), []byte("last"))
	lines[len(lines)-3] = append(lines[len(lines)-3], '\n')
	sourcetest.Run(t, file("?as=lines", lines, nil))
}

func TestLinesEmpty(t *testing.T) {
	sourcetest.Run(t, file("?as=lines", nil, nil))
}

func TestFixed(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	var records [][]byte
	for range 5000 {
		records = append(records, fmt.Appendf(nil, "%032x", r.Uint64()))
	}
	sourcetest.Run(t, file("?as=fixed:32", records, []byte("remainder")))
}

func TestFixedEmpty(t *testing.T) {
	sourcetest.Run(t, file("?as=fixed:32", nil, []byte("less than a record")))
}

// Several chunks, several times what may be resident.
func TestFixedLarge(t *testing.T) {
	const size = 1 << 20
	record := make([]byte, size)
	records := make([][]byte, 192)
	for i := range records {
		records[i] = record
	}
	sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture {
		path := filepath.Join(t.TempDir(), "data")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, int64(len(records))*size); err != nil {
			t.Fatal(err)
		}
		return sourcetest.Fixture{
			Open:    func() (fetch.Source, error) { return fetch.Open("file:"+path+"?as=fixed:1048576", nil) },
			Records: records,
		}
	})
}

func TestWhole(t *testing.T) {
	sourcetest.Run(t, file("?as=files", [][]byte{[]byte("one record")}, nil))
}

func TestWholeEmpty(t *testing.T) {
	sourcetest.Run(t, file("?as=files", [][]byte{{}}, nil))
}

// file makes fixtures of one file, which holds the records and then the rest.
func file(options string, records [][]byte, rest []byte) func(*testing.T) sourcetest.Fixture {
	return func(t *testing.T) sourcetest.Fixture {
		path := filepath.Join(t.TempDir(), "data")
		content := append(bytes.Join(records, nil), rest...)
		write := func(b []byte) error { return os.WriteFile(path, b, 0o600) }
		if err := write(content); err != nil {
			t.Fatal(err)
		}
		f := sourcetest.Fixture{
			Open:    func() (fetch.Source, error) { return fetch.Open("file:"+path+options, nil) },
			Records: records,
			Changes: []sourcetest.Change{
				{Name: "growth", Do: func() error { return write(append(content, '\n')) }},
				{Name: "deletion", Do: func() error { return os.Remove(path) }},
				{Name: "replacement", Do: func() error { return replace(path, content) }},
				{Name: "moving", Do: func() error { return os.Rename(path, path+".moved") }},
				{Name: "a fifo in its place", Do: func() error { return fifo(path) }},
				{Name: "a directory in its place", Do: func() error { return directory(path) }},
			},
		}
		if len(content) > 0 {
			f.Changes = append(f.Changes,
				sourcetest.Change{Name: "truncation", Do: func() error { return os.Truncate(path, int64(len(content)/2)) }},
				sourcetest.Change{Name: "emptying", Do: func() error { return os.Truncate(path, 0) }},
				sourcetest.Change{Name: "a write in place", Do: func() error { return flip(path) }},
				sourcetest.Change{Name: "a write and its old time", Do: func() error { return flipQuietly(path) }},
			)
		}
		return f
	}
}

// A dataset that is made of another one passes for a source, and is stale with it.
func TestDerived(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	var lines [][]byte
	for range 3000 {
		lines = append(lines, append(bytes.Repeat([]byte{byte('a' + r.IntN(26))}, r.IntN(200)), '\n'))
	}
	for _, test := range []struct {
		name, uri string
		records   [][]byte
	}{
		{"all", "dataset:base", lines},
		{"from one on", "dataset:base?records=1000-", lines[1000:]},
		{"some in the middle", "dataset:base?records=7-2006", lines[7:2007]},
		{"the last one", "dataset:base?records=2999-2999", lines[2999:]},
		{"made of one that is made of it", "dataset:middle?records=0-99", lines[500:600]},
	} {
		t.Run(test.name, func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture {
				path := filepath.Join(t.TempDir(), "data")
				content := bytes.Join(lines, nil)
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
				all, env := bases(t)
				all.add(t, "base", "file:"+path+"?as=lines", env)
				all.add(t, "middle", "dataset:base?records=500-", env)
				again := func(name, version string) error {
					b := all[name]
					b.Version = version
					all[name] = b
					return nil
				}
				return sourcetest.Fixture{
					Open:    func() (fetch.Source, error) { return fetch.Open(test.uri, env) },
					Records: test.records,
					Changes: []sourcetest.Change{
						{Name: "growth", Do: func() error { return os.WriteFile(path, append(content, '\n'), 0o600) }},
						{Name: "deletion", Do: func() error { return os.Remove(path) }},
						{Name: "replacement", Do: func() error { return replace(path, content) }},
						{Name: "truncation", Do: func() error { return os.Truncate(path, int64(len(content)/2)) }},
						{Name: "another version of the base", Do: func() error { return errors.Join(again("base", "b2"), again("middle", "m2")) }},
						{Name: "another version of the first base alone", Do: func() error { return again("base", "b2") }},
						{Name: "removal of the base", Do: func() error { delete(all, "base"); return nil }},
					},
				}
			})
		})
	}
}

// A registry is datasets by name.
type registry map[string]fetch.Base

// bases is an empty registry, and what sources find it by.
func bases(*testing.T) (registry, *fetch.Env) {
	all := make(registry)
	return all, &fetch.Env{Base: func(name string) (fetch.Base, error) {
		b, ok := all[name]
		if !ok {
			return fetch.Base{}, fmt.Errorf("dataset %q %w", name, meta.ErrNotExist)
		}
		return b, nil
	}}
}

func (r registry) add(t *testing.T, name, uri string, env *fetch.Env) {
	t.Helper()
	src, err := fetch.Open(uri, env)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	path := filepath.Join(t.TempDir(), name)
	if err := fetch.Build(t.Context(), src, path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	r[name] = fetch.Base{Version: name + "1", Source: uri, Index: x, Check: func(context.Context) error { return nil }}
}

// What cannot be made of a dataset is refused with a reason.
func TestDerivedRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, env := bases(t)
	all.add(t, "base", "file:"+path, env)
	stale := all["base"]
	stale.Check = func(context.Context) error { return meta.ErrStale }
	all["stale"] = stale
	for uri, is := range map[string]error{
		"dataset:none":                meta.ErrNotExist,
		"dataset:base?records=2-":     meta.ErrInvalid,
		"dataset:stale?records=0-0":   meta.ErrStale,
		"dataset:base?records=7-9999": meta.ErrInvalid,
		"dataset:base?records=0-2":    meta.ErrInvalid,
	} {
		src, err := fetch.Open(uri, env)
		if err == nil {
			err = errors.Join(fetch.Build(t.Context(), src, filepath.Join(t.TempDir(), "index"), nil), src.Close())
		}
		if !errors.Is(err, is) {
			t.Errorf("%s: %v, want %v", uri, err, is)
		}
	}
	if _, err := fetch.Open("dataset:base", nil); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("without datasets: %v", err)
	}
}

func TestLMDB(t *testing.T)      { lmdbSuite(t, "", nil) }
func TestLMDBNamed(t *testing.T) { lmdbSuite(t, "a db", nil) }
func TestLMDBHeld(t *testing.T)  { lmdbSuite(t, "", new(lmdb.Holds)) }

func lmdbSuite(t *testing.T, db string, holds *lmdb.Holds) {
	r := rand.New(rand.NewPCG(3, 1))
	var records [][]byte
	for i := range 2000 {
		size := r.IntN(300)
		if i%100 == 0 {
			size = r.IntN(50_000) // on pages of its own
		}
		records = append(records, bytes.Repeat([]byte{byte(i)}, size))
	}
	sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture {
		dir := t.TempDir()
		data := filepath.Join(dir, "data.mdb")
		if err := put(dir, db, records); err != nil {
			t.Fatal(err)
		}
		f := sourcetest.Fixture{
			Open: func() (fetch.Source, error) {
				return fetch.Open("lmdb:"+dir+"?db="+url.PathEscape(db), &fetch.Env{Holds: holds})
			},
			Records: records,
			Changes: []sourcetest.Change{
				{Name: "deletion", Do: func() error { return os.Remove(data) }},
				{Name: "truncation", Do: func() error { return os.Truncate(data, 1<<15) }},
				{Name: "replacement", Do: func() error {
					content, err := os.ReadFile(data)
					return errors.Join(err, replace(data, content))
				}},
				{Name: "emptying", Do: func() error { return os.Truncate(data, 0) }},
			},
		}
		if holds == nil { // with a hold a commit is none of our business
			f.Changes = append(f.Changes, sourcetest.Change{
				Name: "a commit", Do: func() error { return put(dir, db, records[:1]) },
			})
		}
		return f
	})
}

// put writes records, with keys in their order, to a database.
func put(dir, db string, records [][]byte) error {
	env, err := clib.NewEnv()
	if err != nil {
		return err
	}
	defer env.Close()
	err = errors.Join(env.SetMapSize(1<<30), env.SetMaxDBs(4), env.Open(dir, clib.NoSync, 0o600))
	if err != nil {
		return err
	}
	return env.Update(func(txn *clib.Txn) error {
		dbi, err := txn.OpenRoot(0)
		if db != "" {
			dbi, err = txn.CreateDBI(db)
		}
		for i, record := range records {
			err = errors.Join(err, txn.Put(dbi, fmt.Appendf(nil, "%08d", i), record, 0))
		}
		return err
	})
}

func TestTree(t *testing.T) {
	files := map[string]string{
		".hidden": "h", "a": "first", "a-b": "", "a.txt": "second", "b/a": "", "b/b/c": "deep", "b.": "between", "b0": "after",
		"\xff\n": "odd", strings.Repeat("n", 255): "long name", "big": strings.Repeat("x", 100_000),
	}
	for i := range 100 {
		files[fmt.Sprintf("many/%02d/%d", i%80, i)] = fmt.Sprint("file ", i)
	}
	var records [][]byte
	for _, path := range slices.Sorted(maps.Keys(files)) {
		records = append(records, []byte(files[path]))
	}
	sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture {
		dir := t.TempDir()
		for path, content := range files {
			path = filepath.Join(dir, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		a := filepath.Join(dir, "a")
		return sourcetest.Fixture{
			Open:    func() (fetch.Source, error) { return fetch.Open("file:"+dir, nil) },
			Records: records,
			Changes: []sourcetest.Change{
				{Name: "a new file", Do: func() error { return os.WriteFile(a+"a", nil, 0o600) }},
				{Name: "a write far below", Unseen: true, Do: func() error {
					return flip(filepath.Join(dir, "many/79/79"))
				}},
				{Name: "deletion", Do: func() error { return os.Remove(a) }},
				{Name: "deletion of all", Do: func() error { return os.RemoveAll(dir) }},
				{Name: "moving the tree", Do: func() error { return os.Rename(dir, dir+".moved") }},
				{Name: "replacement", Do: func() error { return replace(a, []byte("first")) }},
				{Name: "a write in place", Unseen: true, Do: func() error { return flip(a) }},
				{Name: "a write and its old time", Unseen: true, Do: func() error { return flipQuietly(a) }},
				{Name: "truncation", Unseen: true, Do: func() error { return os.Truncate(a, 2) }},
				{Name: "growth of an empty file", Unseen: true, Do: func() error { return os.WriteFile(a+"-b", []byte("x"), 0) }},
				{Name: "a link in its place", Do: func() error { return link(a, "a.txt") }},
				{Name: "a link that leads out", Do: func() error { return link(a, "/etc/passwd") }},
				{Name: "a fifo in its place", Do: func() error { return fifo(a) }},
				{Name: "a directory in its place", Do: func() error { return directory(a) }},
				{Name: "a link for a directory", Do: func() error { return link(filepath.Join(dir, "many"), "/etc") }},
			},
		}
	})
}

func TestTreeEmpty(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture {
		dir := t.TempDir()
		return sourcetest.Fixture{
			Open: func() (fetch.Source, error) { return fetch.Open("file:"+dir, nil) },
			Changes: []sourcetest.Change{
				{Name: "a new file", Do: func() error { return os.WriteFile(filepath.Join(dir, "a"), nil, 0o600) }},
			},
		}
	})
}

func replace(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func flip(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte("?"), 0)
	return err
}

// flipQuietly hides the write from a check of the time of the last one.
func flipQuietly(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := flip(path); err != nil {
		return err
	}
	return os.Chtimes(path, info.ModTime(), info.ModTime())
}

// away renames what is at the path, so that open descriptors stay good.
func away(path string) error { return os.Rename(path, path+".away") }

func fifo(path string) error {
	if err := away(path); err != nil {
		return err
	}
	return unix.Mkfifo(path, 0o600)
}

func directory(path string) error {
	if err := away(path); err != nil {
		return err
	}
	return os.Mkdir(path, 0o700)
}

func link(path, target string) error {
	if err := away(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}
