package system_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rankfs/test/eventually"
)

var takeovers = flag.Int("takeovers", 20, "how many daemons TestTakeOver kills")

// A mount that begins right after a SIGKILL of the daemon before it waits until
// that has ended, whatever it has still to give back, and never refuses. What its
// readers get meanwhile is an error or the right bytes.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	const batches, readers = 64, 4
	p, s := newNode(t), newFixed(t, batches*16, recordSize)
	n := p.start("--ram", "16MiB", "--nvme", p.at+":64MiB")
	n.create("d", s, "--batch", "16")
	want := make([]string, batches)
	for k := range want {
		want[k] = sumOf(s.all(k*16, (k+1)*16))
	}

	path := func(k int) string { return p.mount + fmt.Sprintf("/datasets/d/rank-0/batch-%06d", k) }
	var good atomic.Int64
	var reading sync.WaitGroup
	over := make(chan struct{})
	for i := range readers {
		r := newRank(t)
		random := rand.New(rand.NewPCG(uint64(i), 1))
		reading.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				k := random.IntN(batches)
				a := r.try(order{Do: "batch", Path: path(k)})
				if a.Errno == "" && a.Sum != want[k] {
					t.Errorf("batch %d has other bytes", k)
					return
				}
				if a.Errno == "" {
					good.Add(1)
				}
			}
		})
	}
	stop := sync.OnceFunc(func() { close(over); reading.Wait() })
	defer stop()
	for i := range *takeovers {
		enough := good.Load() + rand.Int64N(200)
		eventually.Within(t, 2*time.Minute, fmt.Sprintf("daemon %d serves", i), func() bool { return good.Load() > enough })
		n.Signal(syscall.SIGKILL)
		if err := n.Try("--ram", "16MiB", "--nvme", p.at+":64MiB"); err != nil {
			t.Errorf("the mount after kill %d: %v", i, err)
			break
		}
	}
	stop()
	t.Logf("%d right reads over %d kills", good.Load(), *takeovers)
}
