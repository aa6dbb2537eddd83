package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
)

func chunks(t *testing.T, f Fixture) {
	d := Attach(t, f)
	var next uint64
	var total int64
	for i := range d.Chunks() {
		c := d.Chunk(i)
		if c.First != next || c.Records == 0 {
			t.Fatalf("chunk %d is %+v, want one from record %d on", i, c, next)
		}
		var size int64
		for record := c.First; record < c.First+c.Records; record++ {
			size += d.Size(record)
			if d.ChunkOf(record) != i {
				t.Fatalf("record %d is in chunk %d, want %d", record, d.ChunkOf(record), i)
			}
		}
		if size != c.Bytes {
			t.Errorf("chunk %d says %d bytes and has %d", i, c.Bytes, size)
		}
		next, total = next+c.Records, total+size
	}
	if next != d.Records() || total != d.Bytes() {
		t.Errorf("chunks hold %d records and %d bytes of %d and %d", next, total, d.Records(), d.Bytes())
	}
}

func cancelledScan(t *testing.T, f Fixture) {
	src := open(t, f)
	defer src.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "index")
	ctx, cancel := context.WithCancel(t.Context())
	err := fetch.Build(ctx, src, path, func(int64, int64, uint64) { cancel() })
	cancel()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := fetch.Build(ctx, src, path, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before it began: got %v, want context.Canceled", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := fetch.Build(t.Context(), src, path, nil); err != nil {
		t.Errorf("again, to the end: %v", err)
	}
}

func rescan(t *testing.T, f Fixture) {
	src := open(t, f)
	defer src.Close()
	dir := t.TempDir()
	var files [2][]byte
	for i := range files {
		path := filepath.Join(dir, fmt.Sprint(i))
		var last, total int64
		err := fetch.Build(t.Context(), src, path, func(bytes, all int64, _ uint64) {
			if bytes < last || bytes > all {
				t.Errorf("progress went from %d to %d of %d", last, bytes, all)
			}
			last, total = bytes, all
		})
		if err != nil {
			t.Fatal(err)
		}
		if last != total {
			t.Errorf("progress ended at %d of %d", last, total)
		}
		if files[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two scans of one version made two indexes")
	}
}

func foreignIndex(t *testing.T, f Fixture) {
	path := filepath.Join(t.TempDir(), "index")
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Commit("another"); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	src := open(t, f)
	defer src.Close()
	if _, err := fetch.Attach(t.Context(), src, x); !errors.Is(err, meta.ErrStale) {
		t.Errorf("got %v, want ErrStale", err)
	}
}
