package views

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/fs"
)

// What choosing levels takes of a processor while two ranks open 10,000 batches of a page
// a second together, of 8.4 million. All is as in a daemon, but for the kernel,
// through which two cores do not open so many. A batch is a record of its own, in
// the source's order, or a chunk of its own, shuffled: of both it is known when
// they are opened again. Of records that are shuffled that is never, so that
// nothing is to choose.
func BenchmarkChoosingAtRate(b *testing.B) {
	const records, ranks, rate, seconds = 8_400_000, 2, 10_000, 100 // choices are that rare
	for _, view := range []string{"batch=1,order=none", "batch=chunk,order=full"} {
		b.Run(view, func(b *testing.B) {
			n := pagesOf(b, records, view)
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * runtime.NumCPU())) // as Run has it
			for b.Loop() {
				v, err := n.View("d")
				if err != nil {
					b.Fatal(err)
				}
				before, begin := n.cache.Stats(), time.Now()
				var all sync.WaitGroup
				var errs [ranks]error
				for rank := range uint64(ranks) {
					all.Go(func() { errs[rank] = openAtRate(v, rank, seconds*rate/ranks, rate/ranks) })
				}
				all.Wait()
				if err := errors.Join(errs[:]...); err != nil {
					b.Fatal(err)
				}
				took, after := time.Since(begin).Seconds(), n.cache.Stats()
				b.ReportMetric(100*(after.ChoiceTime-before.ChoiceTime).Seconds()/took, "choice-%")
				b.ReportMetric(float64(after.Choices-before.Choices), "choices")
				b.ReportMetric(float64(after.Opens-before.Opens)/took, "opens/s")
			}
		})
	}
}

// openAtRate opens the first batches of a rank, so many a second at most.
func openAtRate(v fs.View, rank uint64, batches, rate int) error {
	begin := time.Now()
	for i := range batches {
		if due := begin.Add(time.Duration(i) * time.Second / time.Duration(rate)); time.Until(due) > time.Millisecond {
			time.Sleep(time.Until(due))
		}
		slab, err := v.Open(context.Background(), 0, rank, uint64(i))
		if err != nil {
			return err
		}
		slab.Release()
	}
	return nil
}

// pagesOf are the views of a node without a mount, with one dataset, d: so many records of a
// page, each in a chunk of its own, of a file that is a hole.
func pagesOf(b *testing.B, records int, view string) *Views {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	const page = 4096
	dir := b.TempDir()
	data, path := filepath.Join(dir, "data"), filepath.Join(dir, "index")
	must(os.WriteFile(data, nil, 0600))
	must(os.Truncate(data, int64(records)*page))
	source := "file:" + data + "?as=fixed:4096"
	src, err := fetch.Open(source, &fetch.Env{})
	must(err)
	defer src.Close()
	version, err := src.Fingerprint(b.Context())
	must(err)
	w, err := index.Create(path)
	must(err)
	f := w.AddFile(index.File{Path: data, Size: int64(records) * page, Stamp: version})
	for i := range int64(records) {
		w.BeginChunk()
		must(w.AddStride(f, i*page, page, 1))
	}
	must(w.Commit(version))

	k := catalogtest.New(b, 1)
	return served(b, k, k.Catalog(source, "ranks=2,"+view, path), 128<<20)
}
