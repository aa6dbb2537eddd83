package fs

import (
	"sync"
	"sync/atomic"
	"testing"
)

// The kernel is told nothing before the tree is mounted, nor after it was unmounted, also of a
// name that is dropped at that moment.
func TestNoticesEndWithTheMount(t *testing.T) {
	for range 200 {
		var n notices
		var told atomic.Int64
		mounted := false // what is told needs it
		tell := func() {
			n.tell(func() {
				if !mounted {
					t.Error("told before it was mounted")
				}
				told.Add(1)
			})
		}
		var work sync.WaitGroup
		for range 4 {
			work.Go(func() {
				for range 50 {
					tell()
				}
			})
		}
		mounted = true
		n.begin()
		tell()
		n.end()
		at := told.Load()
		work.Wait()
		tell()
		n.work.Wait()
		if at == 0 || told.Load() != at {
			t.Fatalf("%d notices while it was mounted, %d afterwards", at, told.Load()-at)
		}
	}
}
