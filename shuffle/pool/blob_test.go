package pool_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/pool"
)

// blobs are those of the job j, and where this node writes what becomes one.
func (m *member) blobs() (b *pool.Blobs, dir string) {
	m.site.t.Helper()
	j, err := m.Job(m.site.ctx, "j")
	if err != nil {
		j, err = m.MakeJob(m.site.ctx, "j", 7, 7, 0)
	}
	if err != nil {
		m.site.t.Fatal(err)
	}
	root, err := j.Files()
	if err != nil {
		m.site.t.Fatal(err)
	}
	return j.Blobs(), path.Join(root.Name(), "blob")
}

// put writes files, each of which has its name in it, and puts what they are in.
func (m *member) put(from, name string, files ...string) error {
	m.site.t.Helper()
	b, dir := m.blobs()
	for _, f := range files {
		at := path.Join(dir, f)
		if err := errors.Join(os.MkdirAll(path.Dir(at), 0o700), os.WriteFile(at, []byte(f), 0o600)); err != nil {
			m.site.t.Fatal(err)
		}
	}
	return b.Put(m.site.ctx, "blob/"+from, name, false)
}

// What a program has open to write is not put, alone or in a directory, and whatever its name
// is by now, also while the kernel has no descriptor of it yet, which a lease would show.
func TestOpenedIsNotPut(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	b, dir := m.blobs()
	for _, name := range []string{".a", ".d/a"} {
		at := path.Join(dir, name)
		if err := errors.Join(os.MkdirAll(path.Dir(at), 0o700), os.WriteFile(at+"-before", nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(at + "-before")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		closed, err := b.Opened(file)
		if err := errors.Join(err, os.Rename(at+"-before", at)); err != nil {
			t.Fatal(err)
		}
		from := "blob/" + name[:2]
		if err := b.Put(s.ctx, from, "put"+name[1:2], false); !errors.Is(err, meta.ErrBusy) {
			t.Errorf("%s, which is open: %v", from, err)
		}
		closed()
		if err := b.Put(s.ctx, from, "put"+name[1:2], false); err != nil {
			t.Errorf("%s, which is closed: %v", from, err)
		}
	}
}

// get is what a node reads of a blob.
func (m *member) get(name string) (string, error) {
	m.site.t.Helper()
	b, _ := m.blobs()
	is, _, err := b.Find(m.site.ctx, name)
	if err != nil {
		return "", err
	}
	f, err := b.Open(m.site.ctx, is.Number)
	if err != nil {
		return "", err
	}
	defer f.Release()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	return string(text), err
}

// A put whose outcome is not known keeps its file, which no process may write; to put it again
// is to learn the outcome. It is the same blob, whether it was agreed on or not.
func TestPutAgain(t *testing.T) {
	for name, agrees := range map[string]bool{"agreed on": true, "not agreed on": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, 2)
				m, other := s.members[0], s.members[1]
				if err := m.put(".before", "k", ".before"); err != nil {
					t.Fatal(err)
				}
				b, dir := m.blobs()
				for _, is := range []struct{ from, name, file, blob string }{{".k", "k", ".k", "k"}, {".d", "d", ".d/e/f", "d/e/f"}} {
					s.silent(agrees)
					if err := m.put(is.from, is.name, is.file); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("put of %s without an answer: %v", is.from, err)
					}
					if err := mayPut(b, "blob/"+is.file); !errors.Is(err, meta.ErrBusy) {
						t.Errorf("%s may be written: %v", is.file, err)
					}
					stop := m.follow()
					time.Sleep(5 * time.Minute) // what was not agreed on is swept long before
					stop()
					if err := mayPut(b, "blob/"+is.file); !errors.Is(err, meta.ErrBusy) {
						t.Errorf("later %s may be written: %v", is.file, err)
					}
					s.hook(hooks{})
					if err := b.Put(s.ctx, "blob/"+is.from, is.name, false); err != nil {
						t.Errorf("put of %s again: %v", is.from, err)
					}
					if got, err := other.get(is.blob); err != nil || got != is.file {
						t.Errorf("%s is %q, %v", is.blob, got, err)
					}
					if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
						t.Errorf("after that there is %v, %v", left, err)
					}
				}
				numbers := make(map[uint64]bool)
				for _, k := range agreed[*state.CommitMaps](s) {
					if one := k.Maps[0].Maps[0]; one.Name == "k" {
						numbers[one.Map] = true
					}
				}
				if len(numbers) != 2 {
					t.Errorf("two files were put as %d blobs", len(numbers))
				}
			})
		})
	}
}

// What cannot be put is as it was, and has left nothing.
func TestPutsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 2)
		m := s.members[0]
		if err := m.put(".k", "k", ".k"); err != nil {
			t.Fatal(err)
		}
		before := m.files()
		b, dir := m.blobs()
		for _, name := range []string{"", "a//b", "../k", ".k", "k/", "none/k", "\xff"} {
			if err := m.put(".x", name, ".x"); !errors.Is(err, meta.ErrInvalid) && !errors.Is(err, meta.ErrNotExist) {
				t.Errorf("put as %q: %v", name, err)
			}
		}
		if err := b.Put(s.ctx, "blob/.x", "k", true); !errors.Is(err, meta.ErrExist) {
			t.Errorf("a name that is taken: %v", err)
		}
		ctx, interrupt := context.WithCancel(s.ctx)
		interrupt()
		if err := b.Put(ctx, "blob/.x", "l", false); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
		f, err := os.OpenFile(dir+"/.x", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Put(s.ctx, "blob/.x", "l", false); !errors.Is(err, meta.ErrBusy) {
			t.Errorf("while it is written: %v", err)
		}
		if err := errors.Join(os.Mkdir(dir+"/.d", 0o700), os.WriteFile(dir+"/.d/a", nil, 0o600), os.Rename(dir+"/.x", dir+"/.d/x")); err != nil {
			t.Fatal(err)
		}
		if err := b.Put(s.ctx, "blob/.d", "d", false); !errors.Is(err, meta.ErrBusy) {
			t.Errorf("while one file of a directory is written: %v", err)
		}
		f.Close()
		for _, name := range []string{"blob/.d/a", "blob/.d/x"} {
			if err := mayPut(b, name); err != nil {
				t.Errorf("%s must not be written: %v", name, err)
			}
		}
		if err := os.RemoveAll(dir + "/.d"); err != nil {
			t.Fatal(err)
		}
		if after := m.files(); len(after) != len(before) {
			t.Errorf("there were %v, and are %v", before, after)
		}
	})
}

// A reader that looked a blob up before it was replaced, or removed, is to look again; a blob
// without a copy is an error until it is put anew.
func TestBlobsThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1)
		m := s.members[0]
		if err := m.put(".k", "k", ".k"); err != nil {
			t.Fatal(err)
		}
		b, _ := m.blobs()
		is, c, err := b.Find(s.ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.put(".l", "k", ".l"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Open(s.ctx, is.Number); !errors.Is(err, meta.ErrStale) {
			t.Errorf("of one that was replaced: %v", err)
		}
		is, c, _ = b.Find(s.ctx, "k")
		name := state.StageName{Job: "j", Name: meta.BlobDir}
		s.must(state.Sender{Node: m.id}, &state.DropMap{StageName: name, Map: c.Map, Sum: c.Sum})
		if _, err := m.get("k"); !errors.Is(err, meta.ErrLost) {
			t.Errorf("of one that is lost: %v", err)
		}
		if err := m.put(".m", "k", ".m"); err != nil {
			t.Error(err)
		}
		if got, err := m.get("k"); err != nil || got != ".m" {
			t.Errorf("put anew: %q, %v", got, err)
		}
		is, _, _ = b.Find(s.ctx, "k")
		if err := b.Remove(s.ctx, is); err != nil {
			t.Error(err)
		}
		if _, err := b.Open(s.ctx, is.Number); !errors.Is(err, meta.ErrStale) {
			t.Errorf("of one that was removed: %v", err)
		}
	})
}

// mayPut says why a file must not be written, if so.
func mayPut(b *pool.Blobs, name string) error {
	done, err := b.Write(name)
	if err == nil {
		done()
	}
	return err
}
