package plans_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// received is how many bytes of HDFS a node has read.
func received(t *testing.T, n *daemon.Place) (bytes uint64) {
	t.Helper()
	var s struct{ HDFS struct{ Bytes uint64 } }
	n.Status(&s)
	return s.HDFS.Bytes
}

// indexes are the names of the indexes that a node has, which are their hashes.
func indexes(n *daemon.Place) []string {
	return strings.Fields(n.Must("ls", n.Dir+"/state/indexes"))
}

// allUp waits until each node knows that all are up.
func (m *team) allUp() {
	m.t.Helper()
	for _, n := range m.Nodes {
		eventually.Within(m.t, patience, "all nodes are known to be up", func() bool {
			s := m.Members(n)
			return s.Leader != "" && s.Up() == len(m.Nodes)
		})
	}
}

// The nodes that are up look through a source together, and the index is to the byte
// what one node alone makes, also when one of them is killed meanwhile.
func TestSeveralNodesMakeAnIndex(t *testing.T) {
	c := cluster.Plans(t)
	k := put(t, c, 64, c.DataNodes()...)
	hosts := c.DataNodes()
	m := newTeam(t, c, hosts[:1])
	first := m.Nodes[0]
	m.create("alone", k)
	want := indexes(first)
	if len(want) != 1 {
		t.Fatalf("indexes are %q, want one", want)
	}
	for _, more := range [][]*cluster.Host{hosts[1:2], hosts[2:4]} {
		token := m.Token(first, len(more))
		for _, h := range more {
			n := daemon.New(t, rankfs, h, "--listen", h.IP+daemon.Port, "--ram", "256MiB", "--hadoop-conf", c.Conf())
			m.Nodes = append(m.Nodes, n)
			m.Join(n, first, token)
		}
		m.allUp()
		before := received(t, first)
		m.create("together", k)
		helped := received(t, m.Nodes[1])
		if helped == 0 {
			t.Errorf("with %d nodes only the one that was asked has read: %d bytes", len(m.Nodes), received(t, first)-before)
		}
		t.Logf("of %d bytes with %d nodes, the first read %d, the second %d", len(k.text), len(m.Nodes), received(t, first)-before, helped)
		for _, n := range m.Nodes {
			if got := indexes(n); len(got) != 1 || got[0] != want[0] {
				t.Errorf("with %d nodes %s has indexes %q, want %q", len(m.Nodes), n.Host.Name, got, want)
			}
		}
		first.Do("dataset", "rm", "together")
	}

	// One is silent when it is asked, and then dead. On a busy machine it may be taken for
	// dead before it is asked: then once more.
	last, asked := m.Nodes[3], false
	for try := 0; !asked && try < 5; try++ {
		if try > 0 {
			last.Start()
			m.allUp()
			first.Do("dataset", "rm", "again")
		}
		before := received(t, first)
		last.Signal(syscall.SIGSTOP)
		made := make(chan error, 1)
		go func() {
			_, err := first.Rankfs("dataset", "create", "again", "--source", "hdfs://"+c.Nameservice()+k.dir, "--as", "lines")
			made <- err
		}()
		eventually.Within(t, patience, "the source is looked through", func() bool { return received(t, first) > before })
		last.Kill()
		if err := <-made; err != nil {
			t.Fatal(err)
		}
		if got := indexes(first); len(got) != 1 || got[0] != want[0] {
			t.Errorf("with a node that dies, indexes are %q, want %q", got, want)
		}
		asked = strings.Contains(first.Log(), "another node did not read a split of a file")
	}
	if !asked {
		t.Errorf("the node that died was not asked:\n%s", first.Log())
	}
	var d struct{ Records, Bytes int }
	if err := json.Unmarshal([]byte(first.Do("--json", "dataset", "show", "again")), &d); err != nil || d.Bytes != len(k.text) {
		t.Errorf("%+v, %v; want %d bytes", d, err, len(k.text))
	}
}
