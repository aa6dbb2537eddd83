package datanode

import (
	"sync/atomic"
	"testing"
)

// However much comes meanwhile, no more is counted of this host than of all, nor by
// file than of this host: what is left is a counter too.
func TestSnapshotIsConsistent(t *testing.T) {
	c := New(Config{})
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			c.cameByFile(1)
		}
	}()
	for range 200_000 {
		if s := c.Snapshot(); s.Files > s.Local || s.Local > s.Bytes {
			t.Errorf("%+v", s)
			break
		}
	}
	stop.Store(true)
	<-done
}
