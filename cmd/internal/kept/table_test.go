package kept

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"rankfs/cache"
	"rankfs/cache/policy"
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/fetch"
	"rankfs/meta/durable"
	"rankfs/test/eventually"
)

// lines are a source and its index.
func lines(t *testing.T, text string) (source, indexed string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	source = "file:" + path + "?as=lines"
	src, err := fetch.Open(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if err := fetch.Build(t.Context(), src, path+".index", func(int64, int64, uint64) {}); err != nil {
		t.Fatal(err)
	}
	return source, path + ".index"
}

// started is what a node keeps of a dataset d, whose views it watches.
func started(t *testing.T) (*Kept, *catalogtest.Cluster, *catalog.Catalog) {
	t.Helper()
	memory, err := cache.New(cache.Config{RAMBytes: 16 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	k := catalogtest.New(t, 1)
	source, indexed := lines(t, "one\ntwo\n")
	c := k.Catalog(source, "ranks=2,batch=2", indexed)
	of := keeping(k, c, "a", memory, 0)
	of.slabs.Dir = t.TempDir()
	if err := of.Start(t.Context(), memory, nil); err != nil {
		t.Fatal(err)
	}
	of.slabs.Views.Start(context.Background(), memory, of)
	return of, k, c
}

// A disk does not answer what is written to it, until it is told.
type disk struct{ asked, answer chan struct{} }

func silent() *disk { return &disk{make(chan struct{}), make(chan struct{})} }

func (d *disk) write(path string, text []byte, mode fs.FileMode) error {
	close(d.asked)
	<-d.answer
	return durable.WriteFile(path, text, mode)
}

// Whatever is kept is in a file that a disk does not take: views are looked up all the same,
// and it is kept once the file is written.
func TestNoLookupWaitsForADisk(t *testing.T) {
	for name, change := range map[string]func(k *Kept, d *disk) error{
		"a pin": func(k *Kept, d *disk) error {
			k.pins.levels.write = d.write
			_, err := k.pins.set("d@epoch=1", policy.RAM)
			return err
		},
		"a trace": func(k *Kept, d *disk) error {
			k.learnt.write = d.write
			return k.learnt.keep("e", oddTrace("e"))
		},
		"a registration": func(k *Kept, d *disk) error {
			k.slabs.registered.write = d.write
			return k.slabs.registered.set("e", time.Now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, _, _ := started(t)
			var others sync.WaitGroup
			defer others.Wait()
			d := silent()
			defer close(d.answer)
			others.Go(func() {
				if err := change(k, d); err != nil {
					t.Error(err)
				}
			})
			<-d.asked
			eventually.Ends(t, "a lookup", func() error {
				_, err := k.slabs.Views.Open("d@epoch=1")
				k.keeps("d")
				k.slabs.registered.find("d")
				return err
			})
		})
	}
}

// A view that is another when its pin is in the file is pinned as it is then.
func TestPinOfAViewThatChanges(t *testing.T) {
	k, cluster, c := started(t)
	d := silent()
	k.pins.levels.write = d.write
	pinned := make(chan error, 1)
	go func() {
		_, err := k.PinCache(context.Background(), control.CachePinRequest{View: "d@epoch=1", Tier: control.TierRAM})
		pinned <- err
	}()
	select {
	case <-d.asked:
	case err := <-pinned:
		t.Fatal(err)
	}
	answer := sync.OnceFunc(func() { close(d.answer) })
	defer answer()
	was, err := c.Get("d")
	if err != nil {
		t.Fatal(err)
	}
	r, indexed := was.Registration, ""
	r.Source, indexed = lines(t, "three\n")
	cluster.Put(r, indexed)
	if !c.Update(t.Context()) {
		t.Fatal("the dataset was not loaded")
	}
	var v *views.View
	eventually.Ends(t, "a lookup", func() (err error) {
		v, err = k.slabs.Views.Open("d@epoch=1")
		return err
	})
	answer()
	if err := <-pinned; err != nil {
		t.Fatal(err)
	}
	want, _ := v.Batches().CachedAs()
	if pin, ok := k.pins.find(v.Key()); !ok || !slices.Equal(pin.series, want) {
		t.Errorf("%x are pinned, want %x", pin.series, want)
	}
}
