package nodes_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rankfs/test/census"
	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

var (
	censuses   = flag.Int("census", 3, "stages of the shuffle pool to fill under random faults")
	censusSeed = flag.Uint64("census-seed", 0, "of the first of them; 0 draws one")
)

// Workers on four nodes fill stages with maps, racing each other, while workers,
// daemons and links fail at random, one node at a time. Each map is in the parts whole
// and once, on every node, and who won stays so.
func TestPoolCensus(t *testing.T) {
	t.Parallel()
	seed := *censusSeed
	if seed == 0 {
		seed = rand.Uint64() >> 24
	}
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:4], "--pool-ram", "64MiB")
	m.voting()
	for i := range uint64(*censuses) {
		if !t.Run(fmt.Sprintf("census-seed %d", seed+i), func(t *testing.T) {
			m.in(t)
			m.census(seed + i)
		}) {
			break // the rest would wait for what does not come
		}
		m.in(t)
	}
	m.noJobs()
}

// A gang is the workers of a census as they run.
type gang struct {
	mu    sync.Mutex
	cmds  []*exec.Cmd // by node
	ended chan error
}

func (m *team) census(seed uint64) {
	m.t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	c := &census.Census{Maps: 20, Parts: 4, Seed: seed}
	job := fmt.Sprintf("census-%d", seed)
	m.Nodes[0].Must("sh", "-euc", `mkdir -p "$0"; echo "$1" > "$0/spec"`, m.Nodes[0].Mount()+"/shuffle/"+job+"/s",
		fmt.Sprintf("maps=%d parts=%d copies=2 strict=%d", c.Maps, c.Parts, random.IntN(2)))
	w := &gang{cmds: make([]*exec.Cmd, len(m.Nodes)), ended: make(chan error, len(m.Nodes))}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	for i, n := range m.Nodes {
		go func() {
			w.ended <- c.Work(n.Mount()+"/shuffle/"+job+"/s", i,
				func(name string, args ...string) *exec.Cmd { return n.Command(ctx, name, args...) },
				func(cmd *exec.Cmd) {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.cmds[i] = cmd
				})
		}()
	}
	for left, faults := len(m.Nodes), 0; left > 0; {
		pause := time.After(time.Duration(random.IntN(900)) * time.Millisecond)
		if faults == 4 {
			pause = nil
		}
		select {
		case err := <-w.ended:
			left--
			m.must(err)
		case <-pause:
			m.fault(random, w)
			faults++
		}
	}
	m.voting()
	for _, n := range m.Nodes {
		for part := range c.Parts {
			b, err := n.Tool("cat", fmt.Sprintf("%s/shuffle/%s/s/part-%06d", n.Mount(), job, part))
			m.must(err)
			if err := c.Check(part, []byte(b)); err != nil {
				m.t.Errorf("on %s: %v", n.Host.Name, err)
			}
		}
	}
	n := m.Nodes[random.IntN(len(m.Nodes))]
	n.Must("rm", "-r", n.Mount()+"/shuffle/"+job)
}

// fault has one node or worker fail, and be well again.
func (m *team) fault(random *rand.Rand, w *gang) {
	m.t.Helper()
	i := random.IntN(len(m.Nodes))
	n := m.Nodes[i]
	span := time.Duration(random.IntN(7000)) * time.Millisecond
	switch kind := random.IntN(6); kind {
	case 0, 1:
		m.t.Logf("worker %d is killed", i)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.cmds[i] != nil {
			w.cmds[i].Process.Kill()
		}
	case 2, 3:
		m.t.Logf("the daemon of node %d is killed", i)
		n.Kill()
		n.Start()
	case 4:
		m.t.Logf("the daemon of node %d is stopped for %v", i, span)
		n.Signal(syscall.SIGSTOP)
		time.Sleep(span)
		n.Signal(syscall.SIGCONT)
	case 5:
		m.t.Logf("the link of node %d is down for %v", i, span)
		m.must(n.Host.LinkDown())
		time.Sleep(span)
		m.must(n.Host.LinkUp())
	}
}

// noJobs removes all jobs, and waits until no node has any files of them.
func (m *team) noJobs() {
	m.t.Helper()
	m.Nodes[0].Must("sh", "-c", `rm -rf "$0"/*`, m.Nodes[0].Mount()+"/shuffle")
	for _, n := range m.Nodes {
		eventually.Within(m.t, patience, "no file system of a job is left on "+n.Host.Name, func() bool {
			return m.poolMounts(n) == 0
		})
	}
}

func (m *team) poolMounts(n *daemon.Place) int {
	m.t.Helper()
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", n.PID()))
	m.must(err)
	return strings.Count(string(table), n.Dir+"/state/pool/")
}
