package plans_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// Two nodes open the same rank of an epoch that is not planned yet, and then a third
// another rank: all read, one plan is settled, and every node goes by that.
func TestTwoNodesClaimOneRank(t *testing.T) {
	c := cluster.Plans(t)
	k := put(t, c, 8, c.DataNodes()...)
	m := newTeam(t, c, c.DataNodes())
	m.create("d", k, "--ranks", "4", "--batch", "512", "--order", "full", "--seed", "7")
	for epoch := range 4 {
		view := fmt.Sprintf("d@epoch=%d", epoch)
		first, second, other := m.Nodes[epoch%4], m.Nodes[(epoch+1)%4], m.Nodes[(epoch+2)%4]
		var got [3]string
		var errs [3]error
		var all sync.WaitGroup
		all.Go(func() { got[0], errs[0] = first.Tool("cat", first.Mount()+"/datasets/"+view+"/rank-0/batch-000000") })
		all.Go(func() { got[1], errs[1] = second.Tool("cat", second.Mount()+"/datasets/"+view+"/rank-0/batch-000000") })
		all.Wait()
		// Not beside them: a node that is the first by more than the settle window has the
		// plan made without the others.
		got[2], errs[2] = other.Tool("cat", other.Mount()+"/datasets/"+view+"/rank-3/batch-000000")
		if errs[0] != nil || errs[1] != nil || errs[2] != nil {
			t.Fatalf("%s: %v", view, errs)
		}
		if got[0] != got[1] || got[0] == "" || got[0] == got[2] {
			t.Errorf("%s: rank 0 has %d bytes on %s and others, %d, on %s", view, len(got[0]), first.Host.Name, len(got[1]), second.Host.Name)
		}
		m.onePlan(view, first.Host.Name, second.Host.Name)
	}
	k.whole(t, m.Nodes[3], "d@epoch=3")
}

// onePlan checks that all nodes have the same plan of a view, settled, with rank 0
// on one of two hosts.
func (m *team) onePlan(view string, first, second string) {
	m.t.Helper()
	var before string
	for i, n := range m.Nodes {
		plans := ""
		eventually.Within(m.t, patience, view+" is settled once as "+n.Host.Name+" knows", func() bool {
			plans = n.Must("cat", n.Mount()+"/.rankfs/plans")
			return strings.Contains(plans, view+",")
		})
		table := n.Must("cat", n.Mount()+"/datasets/"+view+"/locality")
		if i > 0 && table != before {
			m.t.Errorf("%s is planned otherwise on %s than on %s", view, n.Host.Name, m.Nodes[i-1].Host.Name)
		}
		before = table
		if strings.Count(plans, view+",") != 1 {
			m.t.Errorf("on %s, %s is not settled once:\n%s", n.Host.Name, view, plans)
		}
	}
	var batch, rank, node string
	if _, err := fmt.Sscan(strings.Split(before, "\n")[1], &batch, &rank, &node); err != nil || node != first && node != second {
		m.t.Errorf("%s: rank 0 was opened on %s and %s, and is planned for %q (%v)", view, first, second, node, err)
	}
}
