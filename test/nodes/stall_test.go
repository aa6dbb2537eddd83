package nodes_test

import (
	"encoding/json"
	"strings"
	"testing"

	"rankfs/test/cluster"
)

// The first of two ranks waits a while for where the other one is. Its node says
// that it was the plan, and how not to wait for it; the other node knows of no
// rank, and both say which node it is that tells. With the plan settled before,
// nothing of that wait is left but the daemon's own work.
func TestStallOfAPlan(t *testing.T) {
	t.Parallel()
	c := cluster.Wide(t)
	dir := c.Dir(t)
	c.DataNodes()[0].Put(t, dir+"/lines", []byte(strings.Repeat("a line\n", 64)), 1, 1<<20)
	m := newTeam(t, c, c.DataNodes()[:2], "--hadoop-conf", c.Conf())
	m.Nodes[0].Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir, "--as", "lines", "--ranks", "2", "--batch", "4")
	m.Await("d")
	waits := func(view string) (all map[string]float64, advice string) {
		t.Helper()
		n := m.Nodes[0]
		n.Must("cat", n.Mount()+"/datasets/"+view+"/rank-0/batch-000000")
		var jobs []struct {
			Advice string
			Total  struct{ Waits map[string]float64 }
		}
		if err := json.Unmarshal([]byte(n.Do("--json", "stall", view)), &jobs); err != nil || len(jobs) != 1 {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		t.Logf("%s waited for %v", view, jobs[0].Total.Waits)
		return jobs[0].Total.Waits, jobs[0].Advice
	}
	waited, advice := waits("d")
	for cause, seconds := range waited {
		if seconds > waited["plan"] {
			t.Errorf("it waited longer for %s", cause)
		}
	}
	if !strings.HasSuffix(advice, "rankfs plan d@epoch=N --hostfile FILE --settle") {
		t.Errorf("the advice is %s", advice)
	}
	one, other := m.Nodes[0].Do("stall", "d"), m.Nodes[1].Do("stall", "d")
	if !strings.Contains(one, "\nnode     "+m.Nodes[0].Host.Name+", one of 2: each tells of its own ranks\n") {
		t.Errorf("on the node that reads:\n%s", one)
	}
	if other != "no rank on "+m.Nodes[1].Host.Name+", one of 2 nodes, has opened a batch of d since the mount\n" {
		t.Errorf("on the other:\n%s", other)
	}
	m.Nodes[0].Do("plan", "d@order=full", "--settle")
	if settled, _ := waits("d@order=full"); settled["plan"] > waited["plan"]/4 {
		t.Errorf("with a settled plan, finding which rank reads what took %v s, and %v s without", settled["plan"], waited["plan"])
	}
}
