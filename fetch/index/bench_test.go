package index_test

import (
	"path/filepath"
	"testing"

	"rankfs/fetch/index"
)

func BenchmarkExtent(b *testing.B) {
	const records = 1 << 20
	x := open(b, build(b, func(w *index.Builder) {
		f := w.AddFile(index.File{Size: 1 << 40})
		for i := range int64(records) {
			w.Add(index.Extent{File: f, Off: i, Len: 7})
		}
	}))
	i := uint64(0)
	for b.Loop() {
		i = i*6364136223846793005 + 1442695040888963407
		x.Extent(i >> 44)
	}
}

func BenchmarkAdd(b *testing.B) {
	w, err := index.Create(filepath.Join(b.TempDir(), "index"))
	if err != nil {
		b.Fatal(err)
	}
	defer w.Abort()
	f := w.AddFile(index.File{Size: 1 << 40})
	for b.Loop() {
		w.Add(index.Extent{File: f, Len: 7})
	}
}
