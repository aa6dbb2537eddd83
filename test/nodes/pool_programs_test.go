package nodes_test

import (
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// MPI ranks on four hosts exchange data by the pool, as two copies, and sort with tasks
// that run twice, on two hosts each.
func TestMPIOverThePool(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:4], "--pool-ram", "64MiB")
	agent := c.Agent(t)
	defer m.withoutJobs()
	jobs := func(name string) (dirs []string) {
		for _, n := range m.Nodes {
			dirs = append(dirs, n.Mount()+"/shuffle/"+name)
		}
		return dirs
	}
	for program, args := range map[string][]string{
		"exchange":    append([]string{"-v", "-c", "2", "-s", "1048576", "pool"}, jobs("job/exchange")...),
		"sample_sort": append([]string{"-t", "-n", "5000"}, jobs("job")...),
	} {
		m.Nodes[0].Must("mkdir", "-p", m.Nodes[0].Mount()+"/shuffle/job")
		out, err := m.MPI(agent, 2, daemon.Built(t, program), args...)
		if err != nil || !strings.Contains(out, program+" OK ") || !strings.Contains(out, " ranks=8 ") {
			t.Errorf("%s: %v %s", program, err, out)
		}
	}
	eventually.Within(t, patience, "each of eight maps has two copies", func() bool {
		return strings.Contains(m.Nodes[1].Must("cat", jobs("job/exchange/state")[1]), "missing    0 copies")
	})
}

// withoutJobs removes all jobs of the pool, whose files outlive the daemons.
func (m *team) withoutJobs() {
	m.t.Helper()
	m.Nodes[0].Must("sh", "-c", `rm -r "$0"/shuffle/*`, m.Nodes[0].Mount())
	for _, n := range m.Nodes {
		eventually.Within(m.t, patience, "no file system of a job is left", func() bool {
			out, _ := n.Tool("sh", "-c", `grep -c "$0" /proc/self/mounts`, n.Dir+"/state/pool")
			return strings.TrimSpace(out) == "0"
		})
	}
}
