package index_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/fetch/index"
	"rankfs/meta"
)

func TestBuilderRefuses(t *testing.T) {
	tests := []struct {
		name string
		add  func(*index.Builder) error
	}{
		{"no such file", func(b *index.Builder) error { return b.Add(index.Extent{File: 1}) }},
		{"negative offset", func(b *index.Builder) error { return b.Add(index.Extent{Off: -1, Len: 1}) }},
		{"negative length", func(b *index.Builder) error { return b.Add(index.Extent{Len: -1}) }},
		{"past the end", func(b *index.Builder) error { return b.Add(index.Extent{Off: 99, Len: 2}) }},
		{"overflow", func(b *index.Builder) error { return b.Add(index.Extent{Off: math.MaxInt64, Len: math.MaxInt64}) }},
		{"zero stride", func(b *index.Builder) error { return b.AddStride(0, 0, 0, 5) }},
		{"negative stride", func(b *index.Builder) error { return b.AddStride(0, 0, -1, 5) }},
		{"stride overflow", func(b *index.Builder) error { return b.AddStride(0, 0, 1<<40, 1<<40) }},
		{"stride past the end", func(b *index.Builder) error { return b.AddStride(0, 1, 10, 10) }},
		{"negative file", func(b *index.Builder) error {
			b.AddFile(index.File{Size: -1})
			return b.Add(index.Extent{})
		}},
		{"rack with zero", rack("host", "a\x00b")},
		{"rack without a name", rack("host", "")},
		{"host of a rack without a name", rack("", "rack")},
		{"host of a rack with a long name", rack(strings.Repeat("h", 1025), "rack")},
		{"racks of too many hosts", func(b *index.Builder) error {
			for i := range 1<<16 + 1 {
				b.Rack(fmt.Sprint(i), "rack")
			}
			return b.Add(index.Extent{})
		}},
		{"host with zero", func(b *index.Builder) error {
			b.BeginChunk("a\x00b")
			return b.Add(index.Extent{})
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			b, err := index.Create(filepath.Join(dir, "index"))
			if err != nil {
				t.Fatal(err)
			}
			b.AddFile(index.File{Size: 100})
			if err := test.add(b); !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
			if err := b.Commit("v1"); !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("Commit: %v, want ErrInvalid", err)
			}
			empty(t, dir)
		})
	}
}

func rack(host, rack string) func(b *index.Builder) error {
	return func(b *index.Builder) error {
		b.Rack(host, rack)
		return b.Add(index.Extent{})
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	b, err := index.Create(filepath.Join(dir, "index"))
	if err != nil {
		t.Fatal(err)
	}
	small(b)
	b.Abort()
	b.Abort()
	empty(t, dir)
	if err := b.Commit("v1"); err == nil {
		t.Error("Commit after Abort succeeded")
	}
}

func TestCommitReplacesWhole(t *testing.T) {
	path := build(t, small)
	old := open(t, path)
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Commit("v2"); err != nil {
		t.Fatal(err)
	}
	if got := open(t, path).Fingerprint(); got != "v2" {
		t.Errorf("fingerprint %q, want v2", got)
	}
	if old.Fingerprint() != "v1" || old.Extent(0).Len != 10 {
		t.Error("the index that was open has changed")
	}
}
