package batch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// Who owns a chunk is known while the source is attached, however long that takes.
func TestOwnersAreKnownWhileTheSourceIsAttached(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	b.BeginChunk("a")
	b.AddStride(b.AddFile(index.File{Path: "f", Size: 60}), 0, 10, 6)
	if err := b.Commit("v1"); err != nil {
		t.Fatal(err)
	}
	began, end := make(chan struct{}), make(chan struct{})
	o := &plan.Owners{Self: "node-a"}
	o.Follow(nodesOn("a", "b"))
	v, err := Open(path, Config{
		Source: "dataset:base", Root: "hdfs:///base", Hash: strings.Repeat("5", 64), Owners: o,
		Env: &fetch.Env{Base: func(string) (fetch.Base, error) {
			close(began)
			<-end
			return fetch.Base{}, meta.ErrUnavailable
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Opened().Close() })
	attached := make(chan struct{})
	go func() {
		defer close(attached)
		v.Source.Data(t.Context())
	}()
	<-began
	owner := make(chan string, 1)
	go func() { owner <- (&Chunks{Version: v}).Owner(0) }()
	select {
	case got := <-owner:
		if got != "node-a" {
			t.Errorf("it is %q", got)
		}
	case <-time.After(2 * time.Minute):
		t.Error("it is waited for")
		defer func() { <-owner }()
	}
	close(end)
	<-attached
}

// What a read finds changed is known from then on, until a look at the source that began
// later finds it as it was. Any other error of a read says nothing.
func TestAReadNoticesAChange(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("0", "zero")
	put("1", "one")
	uri := "file:" + dir + "?as=files"
	src, err := fetch.Open(uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	path := filepath.Join(t.TempDir(), "index")
	if err := fetch.Build(t.Context(), src, path, nil); err != nil {
		t.Fatal(err)
	}
	o := &plan.Owners{Self: "a"}
	o.Follow(nodesOn("a"))
	v, err := Open(path, Config{Source: uri, Origin: "a", Hash: strings.Repeat("5", 64), Owners: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Opened().Close() })
	data, err := v.Source.Data(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := func(ctx context.Context, record uint64) error {
		e := v.Index.Extent(record)
		return data.Read(ctx, []index.Extent{e}, make([]byte, e.Len))
	}

	begun := v.Source.opened.stale.Load() // by a look that takes until after the read
	put("1", "two")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := errors.Join(v.Source.Check(t.Context()), read(t.Context(), 0)); err != nil {
		t.Fatalf("a look finds %v", err)
	}
	if err := read(done, 1); err == nil || v.Source.Stale() != nil {
		t.Errorf("a read that was broken off ends with %v, and then it is known that %v", err, v.Source.Stale())
	}
	if err := read(t.Context(), 1); !errors.Is(err, meta.ErrStale) {
		t.Fatalf("a read ends with %v", err)
	}
	if v.Source.Stale() == nil {
		t.Error("it is not known what a read found")
	}
	if v.Source.opened.note(begun, nil); v.Source.Stale() == nil {
		t.Error("it is forgotten for a look that began earlier")
	}
	first := v.Source.opened.stale.Load()
	if err := read(t.Context(), 1); !errors.Is(err, meta.ErrStale) {
		t.Errorf("the next read ends with %v", err)
	}
	if v.Source.opened.note(first, nil); v.Source.Stale() == nil {
		t.Error("it is forgotten for a look that began between two reads")
	}
	if v.Source.opened.note(v.Source.opened.stale.Load(), nil); v.Source.Stale() != nil {
		t.Errorf("a later look found it as it was, and it is said that %v", v.Source.Stale())
	}
}
