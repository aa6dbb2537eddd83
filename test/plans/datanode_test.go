package plans_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A datanode is killed, stopped or cut off while daemons read a block from it, below
// the ranks of a job. The job ends well, every line once, and a log says which
// datanode it was; so does the next epoch, which is planned and fetched without it.
func TestADatanodeFailsUnderAJob(t *testing.T) {
	c := cluster.Plans(t)
	bad := c.Host("data4")
	for _, fault := range []struct {
		name         string
		inject, undo func() error
	}{
		{"killed", func() error { return bad.Kill(cluster.DataNode) }, func() error { return bad.Start(cluster.DataNode) }},
		{"stopped", func() error { return bad.Signal(cluster.DataNode, syscall.SIGSTOP) }, func() error { return bad.Continue(cluster.DataNode) }},
		{"cut off", bad.LinkDown, bad.LinkUp},
	} {
		t.Run(fault.name, func(t *testing.T) {
			// No host of a daemon has any of it, so that all is read from afar.
			k := putBlocks(t, c, 4, 8<<20, bad)
			m := newTeam(t, c, []*cluster.Host{c.Host("data3"), c.Host("name1"), c.Host("name2")})
			m.create("d", k, "--ranks", "6", "--batch", "1024", "--order", "full")
			slow(t, bad, 1<<20)
			job := m.verify(k, "d")
			eventually.Within(t, patience, "a block is on its way", func() bool { return sending(t, bad) })
			if err := fault.inject(); err != nil {
				t.Fatal(err)
			}
			slow(t, bad, 0)
			if err := <-job; err != "" {
				t.Errorf("the job: %s", err)
			}
			if !m.logged("replica given up", bad.Name) {
				t.Errorf("no log names %s", bad.Name)
			}
			for _, n := range m.Nodes {
				n.Do("cache", "evict", "d")
			}
			if err := <-m.verify(k, "d@epoch=1"); err != "" {
				t.Errorf("the next epoch: %s", err)
			}
			if err := fault.undo(); err != nil {
				t.Fatal(err)
			}
			if err := c.WaitWell(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// slow limits the link of a host, or no longer.
func slow(t *testing.T, h *cluster.Host, rate int64) {
	t.Helper()
	if err := h.LinkRate(rate); err != nil {
		t.Fatal(err)
	}
}

// sending reports whether a host's datanode has bytes on their way to a reader.
func sending(t *testing.T, h *cluster.Host) bool {
	t.Helper()
	out, err := h.Command(t.Context(), "ss", "-Htn", "state", "established", "( sport = :9866 )").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] != "0" {
			return true
		}
	}
	return false
}

// verify reads a view by two ranks on each host, and says what was wrong.
func (m *team) verify(k *corpus, view string) <-chan string {
	agent, verify := m.c.Agent(m.t), daemon.Built(m.t, "map_verify")
	wrong := make(chan string, 1)
	go func() {
		out, err := m.MPI(agent, 2, verify, append(m.Dirs(view), k.checksums)...)
		if err == nil && strings.Contains(out, "map_verify OK ranks=6") && strings.Contains(out, " missing=0 ") {
			wrong <- ""
			return
		}
		wrong <- fmt.Sprintf("%v\n%s", err, out)
	}()
	return wrong
}

// logged reports whether some daemon has a line with all these words.
func (m *team) logged(words ...string) bool {
	for _, n := range m.Nodes {
		for line := range strings.Lines(n.Log()) {
			all := true
			for _, w := range words {
				all = all && strings.Contains(line, w)
			}
			if all {
				return true
			}
		}
	}
	return false
}
