package batch

import (
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
	t.Cleanup(func() { v.Source.Opened.Close() })
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
