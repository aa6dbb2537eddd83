package disks

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta/slowdisk"
)

// A disk that falls silent while slabs make way for another has that begun no more, and what was
// reserved for it is free again.
func TestSilentWhileSlabsMakeWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, slabs = 4096, 4
		log := slog.New(slog.DiscardHandler)
		d := newDirectory(Dir{t.TempDir(), slabs * size}, Config{Log: log, Patience: time.Minute}, &fileSystems{pending: make(map[uint64]*atomic.Int64)})
		if err := d.enter(true); err != nil {
			t.Fatal(err)
		}
		p := d.slabs.place()
		put := func(step uint64, may spare) error {
			k, mem := Key{Step: step}, make([]byte, size)
			return d.write(k, size, func(f *File) (uint64, error) { return sumOf(k, mem), f.copyOut(mem) }, may)
		}
		for step := range uint64(slabs) {
			if err := put(step, nil); err != nil {
				t.Fatal(err)
			}
		}
		answer := make(chan struct{})
		fallSilent := sync.OnceFunc(func() {
			_ = d.health.do(func(w *slowdisk.Work) error {
				return w.Do(func() error {
					<-answer
					return nil
				})
			})
		})
		err := put(slabs, func(Key) bool {
			fallSilent()
			return true
		})
		if !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("it is written: %v", err)
		}
		if used, _ := d.budget.Use(); used != (slabs-1)*size || p.pending.Load() != 0 {
			t.Errorf("one of %d slabs has made way, and %d bytes are used, %d pending", slabs, used, p.pending.Load())
		}
		close(answer)
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
}
