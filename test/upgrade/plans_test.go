package upgrade_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A plan that a node of the release before has settled is served to the byte alike by
// those of this one, and the reverse, at each step of an upgrade: by nodes that knew it
// when they were started, and by such that were told of it.
func TestPlansOfTwoReleases(t *testing.T) {
	before, now := build(t, "rankfs_release_before"), build(t)
	c := cluster.Plans(t)
	hosts, dir := c.DataNodes()[:3], c.Dir(t)
	var text strings.Builder
	for i := range 6_000 {
		fmt.Fprintf(&text, "%08d %s\n", i, strings.Repeat("abcdefghij", i%12))
	}
	hosts[0].Put(t, dir+"/lines", []byte(text.String()), 1, 64<<10)
	m := daemon.NewTeam(t, before, hosts, "--ram", "256MiB", "--hadoop-conf", c.Conf())
	m.Nodes[0].Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir, "--as", "lines",
		"--ranks", "6", "--batch", "250", "--order", "full", "--seed", "5")
	m.Await("d")
	voting(t, m)
	p := &plans{Team: m, hostfile: filepath.Join(t.TempDir(), "hosts")}
	// Not where ranks would be by default.
	ranks := fmt.Sprintf("%s slots=3\n%s slots=1\n%s slots=2\n", hosts[2].Name, hosts[0].Name, hosts[1].Name)
	if err := os.WriteFile(p.hostfile, []byte(ranks), 0o600); err != nil {
		t.Fatal(err)
	}
	p.settle(m.Nodes[0])
	for i, n := range m.Nodes {
		n.Stop()
		n.Program(now)
		n.Start()
		voting(t, m)
		p.settle(n)
		p.settle(m.Nodes[(i+1)%3])
		p.alike()
	}
}

// plans are epochs of d whose plans are settled, and the sums of their batches where
// that was done.
type plans struct {
	*daemon.Team
	hostfile string
	sums     []map[string]string
}

func view(epoch int) string { return fmt.Sprintf("d@epoch=%d", epoch) }

// settle has a node settle the plan of the next epoch, and serve it.
func (p *plans) settle(n *daemon.Place) {
	p.T.Helper()
	v := view(len(p.sums))
	n.Do("plan", v, "--hostfile", p.hostfile, "--settle")
	p.sums = append(p.sums, p.served(n, v))
}

func (p *plans) served(n *daemon.Place, view string) map[string]string {
	p.T.Helper()
	sums, err := daemon.Sums(n, view)
	if err != nil || len(sums) != 24 {
		p.T.Fatalf("%s on %s: %d batches, %v", view, n.Host.Name, len(sums), err)
	}
	return sums
}

// alike has each node serve all that was settled so far.
func (p *plans) alike() {
	p.T.Helper()
	for _, n := range p.Nodes {
		for epoch, want := range p.sums {
			eventually.Within(p.T, patience, "the plan is known on "+n.Host.Name, func() bool {
				return strings.Contains(n.Must("cat", n.Mount()+"/.rankfs/plans"), view(epoch)+",")
			})
			if !maps.Equal(p.served(n, view(epoch)), want) {
				p.T.Errorf("%s is another on %s than where it was settled", view(epoch), n.Host.Name)
			}
		}
	}
}
