package upgrade_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A job is an MPI program with two ranks on each node, which read an epoch step by
// step, as far as they are told, and wait for a daemon that is away.
type job struct {
	until string // the file that says how far
	steps int
	ended chan error
	out   string // once it has ended
}

func start(t *testing.T, c *cluster.Cluster, m *daemon.Team, checksums string) *job {
	t.Helper()
	program := daemon.Built(t, "map_verify")
	j := &job{until: filepath.Join(t.TempDir(), "until"), ended: make(chan error, 1)}
	agent, done := c.Agent(t), make(chan struct{})
	go func() {
		defer close(done)
		out, err := m.MPI(agent, 2, program, append([]string{"-w", "240", "-u", j.until}, append(m.Dirs("d"), checksums)...)...)
		j.out = out
		j.ended <- err
	}()
	t.Cleanup(func() { // of a test that failed
		j.goOn(t, 1<<30)
		<-done
	})
	return j
}

// goOn lets the job read so many steps more.
func (j *job) goOn(t *testing.T, steps int) {
	t.Helper()
	j.steps += steps
	if err := os.WriteFile(j.until, fmt.Appendln(nil, j.steps), 0o600); err != nil {
		t.Error(err)
	}
}

// reads lets the job read some steps, and waits until both ranks of a node have
// begun to: it goes on while the test does.
func reads(t *testing.T, j *job, n *daemon.Place) {
	t.Helper()
	at := n.Opened()
	j.goOn(t, 15)
	eventually.Within(t, patience, "the ranks of "+n.Host.Name+" read", func() bool {
		select {
		case err := <-j.ended:
			t.Fatalf("the job has ended before the upgrade: %v\n%s", err, j.out)
		default:
		}
		return n.Opened() > at+4
	})
}
