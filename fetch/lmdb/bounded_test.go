package lmdb

import (
	"testing"
	"testing/synctest"
	"time"
)

// A lock file whose mutex is never given back costs a wait, not a hang, and what
// the library answers after all is given back.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		undone := 0
		slow := func(d time.Duration) (int, error) {
			return bounded(func() (int, error) { time.Sleep(d); return 7, nil }, func(int) { undone++ })
		}
		if v, err := slow(lockWait / 2); v != 7 || err != nil {
			t.Errorf("an answer in time: %d, %v", v, err)
		}
		start := time.Now()
		if _, err := slow(time.Hour); err == nil || time.Since(start) != lockWait {
			t.Errorf("no answer: %v after %v, want an error after %v", err, time.Since(start), lockWait)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if undone != 1 {
			t.Errorf("%d late answers given back, want 1", undone)
		}
	})
}
