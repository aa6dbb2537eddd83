package views

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/fetch"
	"rankfs/fetch/batch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/test/eventually"
)

// file is a source of chunks, each of one record of 10 bytes, and its index, as that of
// what is made of it if a prefix of fingerprints says so.
func file(t *testing.T, prefix string, chunks int) (source, indexed string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "records")
	must(os.WriteFile(path, bytes.Repeat([]byte("0123456789"), chunks), 0o600))
	source = "file:" + path + "?as=fixed:10"
	src, err := fetch.Open(source, nil)
	must(err)
	defer src.Close()
	version, err := src.Fingerprint(t.Context())
	must(err)
	b, err := index.Create(path + ".index")
	must(err)
	f := b.AddFile(index.File{Path: path, Size: 10 * int64(chunks), Stamp: version})
	for i := range chunks {
		b.BeginChunk("a")
		b.AddStride(f, 10*int64(i), 10, 1)
	}
	must(b.Commit(prefix + version))
	return source, path + ".index"
}

// hangs is a dataset whose source is attached, and then does not answer until it is told.
func hangs(t *testing.T, k *catalogtest.Cluster) (d *catalog.Dataset, asked <-chan struct{}, answer func()) {
	t.Helper()
	source, path := file(t, "dataset=1;", 8)
	began, end := make(chan struct{}), make(chan struct{})
	var asks atomic.Int32
	v, err := batch.Open(path, batch.Config{
		Source: "dataset:base", Root: "hdfs:///base", Hash: strings.Repeat("5", 64), Owners: k.Owners,
		Env: &fetch.Env{Base: func(string) (fetch.Base, error) {
			switch n := asks.Add(1); { // the first is to attach it
			case n == 2:
				close(began)
				fallthrough
			case n > 2:
				<-end
			}
			return fetch.Base{Version: "1", Source: source}, nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Opened().Close() })
	return &catalog.Dataset{Registration: catalog.Registration{Name: "slow"}, Version: v}, began, func() { close(end) }
}

// While a dataset is removed whose source does not answer a read under way, and another
// node asks for more of it, batches of other datasets are opened.
func TestOthersAreOpenedWhileOneIsRemoved(t *testing.T) {
	k := catalogtest.New(t, 1)
	d, asked, answer := hangs(t, k) // closed once the cache is, which may still make chunks ready
	source, indexed := file(t, "", 8)
	n := served(t, k, k.Catalog(source, "ranks=1,step=1", indexed), 16<<20)
	open := func() error {
		v, err := n.Open("d")
		if err != nil {
			return err
		}
		slab, err := v.Open(t.Context(), 0, 0, 0)
		if err == nil {
			slab.Release()
		}
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}

	if _, err := n.newView("slow", meta.View{Dataset: "slow", Ranks: 1, Step: meta.BatchSize{N: 1}, Assign: meta.AssignStrict}, d); err != nil {
		t.Fatal(err)
	}
	chunks := n.Server().Slabs(d.Version)
	chunk := func(number int) error {
		slab, err := chunks.Chunk(context.Background(), number)
		if err == nil {
			slab.Release()
		}
		return err
	}
	var others sync.WaitGroup
	defer others.Wait()
	defer answer()
	others.Go(func() { chunk(0) })
	<-asked
	attached := d.Version.Source.Attached()
	others.Go(func() { d.Version.Opened().Remove() })
	eventually.True(t, "it is removed", func() bool { return errors.Is(attached.Read(t.Context(), nil, nil), meta.ErrStale) })

	eventually.Ends(t, "a chunk of the dataset that is removed", func() error {
		if err := chunk(5); !errors.Is(err, meta.ErrStale) { // one that was not asked for before
			return fmt.Errorf("want that it is removed: %w", err)
		}
		return nil
	})
	eventually.Ends(t, "a batch of another", open)
}

// A read that hangs of a dataset that is removed, or refreshed, is waited for by no other call:
// not by that which removes it, nor by opens of what its name stands for now, or of other
// datasets, whether these were there or are registered then.
func TestNoCallWaitsForAReadThatHangs(t *testing.T) {
	for _, tt := range []struct {
		name    string
		from    int32 // the question to the source that it does not answer: the first is to attach it
		instead bool  // it is refreshed, not removed
	}{
		{"a read, and it is removed", 2, false},
		{"a read, and it is refreshed", 2, true},
		{"the source is attached, and it is removed", 1, false},
		{"the source is attached, and it is refreshed", 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := catalogtest.New(t, 1)
			source, indexed := file(t, "", 8)
			dropped := make(chan string, 10)
			k.Drop = func(name string) { dropped <- name }
			c := k.Catalog(source, "ranks=1,step=1", indexed)
			n := served(t, k, c, 16<<20)
			began, end := make(chan struct{}), make(chan struct{})
			var asks atomic.Int32
			base, slow := file(t, "dataset=1;", 8)
			k.Env.Base = func(string) (fetch.Base, error) {
				if n := asks.Add(1); n >= tt.from {
					if n == tt.from {
						close(began)
					}
					<-end
				}
				return fetch.Base{Version: "1", Source: base}, nil
			}
			k.Put(catalog.Registration{Name: "slow", Source: "dataset:base", Root: base, View: "ranks=1,step=1"}, slow)
			if !c.Update(t.Context()) {
				t.Fatal("the dataset was not loaded")
			}
			open := func(name string) error {
				v, err := n.Open(name)
				if err != nil {
					return err
				}
				slab, err := v.Open(context.Background(), 0, 0, 0)
				if err == nil {
					slab.Release()
				}
				return err
			}
			var others sync.WaitGroup
			defer others.Wait()
			defer close(end)
			others.Go(func() {
				if err := open("slow"); !errors.Is(err, meta.ErrStale) {
					t.Errorf("the open that hung: %v", err)
				}
			})
			<-began
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			others.Go(func() { c.Follow(ctx) })

			if tt.instead {
				source, indexed := file(t, "", 4)
				k.Put(catalog.Registration{Name: "slow", Source: source, View: "ranks=1,step=1"}, indexed)
			} else {
				eventually.Ends(t, "the removal", func() error { return c.Remove(context.Background(), "slow") })
			}
			eventually.Ends(t, "the name", func() error {
				for name := range dropped {
					if name == "slow" {
						break
					}
				}
				return nil
			})
			if tt.instead {
				eventually.Ends(t, "what the name stands for now", func() error { return open("slow") })
			}
			eventually.Ends(t, "another that was there", func() error { return open("d") })
			source, indexed = file(t, "", 6)
			k.Put(catalog.Registration{Name: "new", Source: source, View: "ranks=1,step=1"}, indexed)
			eventually.Ends(t, "a new one", func() error {
				return eventually.Until(t.Context(), func() error { return open("new") })
			})
		})
	}
}
