package system_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync"
	"testing"
	"time"

	"rankfs/test/census"
)

var (
	censuses   = flag.Int("census", 7, "stages of the shuffle pool to fill while workers and daemon are killed")
	censusSeed = flag.Uint64("census-seed", 0, "of the first of them; 0 draws one")
)

// Workers fill stages with maps, racing each other, and are killed at random, as is the
// daemon. Each map is in the parts whole and once.
func TestPoolCensus(t *testing.T) {
	t.Parallel()
	seed := *censusSeed
	if seed == 0 {
		seed = rand.Uint64() >> 24
	}
	for i := range uint64(rounds(*censuses, 2)) {
		t.Run(fmt.Sprintf("census-seed %d", seed+i), func(t *testing.T) {
			takeCensus(t, rand.New(rand.NewPCG(seed+i, 0)), &census.Census{Maps: 24, Parts: 4, Seed: seed + i})
		})
	}
}

func takeCensus(t *testing.T, random *rand.Rand, c *census.Census) {
	const workers = 3
	n, stage := pool(t, fmt.Sprintf("maps=%d parts=%d", c.Maps, c.Parts))
	var mu sync.Mutex
	cmds, ended := make([]*exec.Cmd, workers), make(chan error, workers)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // before the job is removed
	for slot := range workers {
		go func() {
			start := func(name string, args ...string) *exec.Cmd { return exec.CommandContext(ctx, name, args...) }
			ended <- c.Work(stage, slot, start, func(cmd *exec.Cmd) {
				mu.Lock()
				defer mu.Unlock()
				cmds[slot] = cmd
			})
		}()
	}
	for left, faults := workers, 0; left > 0; {
		pause := time.After(time.Duration(random.IntN(400)) * time.Millisecond)
		if faults == 8 {
			pause = nil
		}
		select {
		case err := <-ended:
			left--
			must(t, err)
		case <-pause:
			faults++
			slot := random.IntN(2 * workers)
			if slot >= workers {
				n.Kill()
				n = n.startPool()
				continue
			}
			mu.Lock()
			if cmds[slot] != nil {
				cmds[slot].Process.Kill()
			}
			mu.Unlock()
		}
	}
	for part := range c.Parts {
		if err := c.Check(part, []byte(sh(t, `cat "$1"`, fmt.Sprintf("%s/part-%06d", stage, part)))); err != nil {
			t.Error(err)
		}
	}
}
