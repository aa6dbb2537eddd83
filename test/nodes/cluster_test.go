package nodes_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A team is one of daemons, with what the tests here ask of it.
type team struct {
	*daemon.Team
	t *testing.T
	c *cluster.Cluster
}

// newTeam founds a cluster on the first host and has the others join.
func newTeam(t *testing.T, c *cluster.Cluster, hosts []*cluster.Host, options ...string) *team {
	t.Helper()
	m := gather(t, c, hosts, options...)
	m.Found()
	return m
}

// gather is a team whose daemons are yet to be started.
func gather(t *testing.T, c *cluster.Cluster, hosts []*cluster.Host, options ...string) *team {
	t.Helper()
	return &team{daemon.Gather(t, rankfs, hosts, append([]string{"--ram", "256MiB"}, options...)...), t, c}
}

// in has a part of a test be told what goes wrong.
func (m *team) in(t *testing.T) { m.t, m.T = t, t }

// lines is a text of so many bytes, each line with its number.
func lines(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%08d %s\n", i, strings.Repeat("abcdefghij", i%12))
	}
	return b.Bytes()
}

// What is registered on one node is there on all, and every node serves the same
// bytes under the same names, whichever node read them first.
func TestOneTree(t *testing.T) {
	t.Parallel()
	c := cluster.Wide(t)
	text := lines(24 << 20)
	dir := c.Dir(t)
	for i, h := range c.DataNodes() {
		part := text[i*len(text)/4 : (i+1)*len(text)/4]
		h.Put(t, fmt.Sprintf("%s/%d", dir, i), part, 2, 1<<20)
	}
	m := newTeam(t, c, c.DataNodes(), "--hadoop-conf", c.Conf())
	m.Nodes[1].Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir, "--as", "lines",
		"--ranks", "4", "--batch", "4096", "--order", "full", "--seed", "3")
	for _, n := range m.Nodes {
		eventually.Within(t, patience, "the dataset is there", func() bool {
			return strings.Contains(n.Must("ls", n.Mount()+"/datasets"), "d")
		})
	}
	// Each node opens its own rank, all at once; then everything.
	daemon.Each(m.Nodes, func(i int, n *daemon.Place) {
		if _, err := n.Tool("cat", fmt.Sprintf("%s/datasets/d/rank-%d/batch-000000", n.Mount(), i)); err != nil {
			t.Error(err)
		}
	})
	seen := make([]map[string]string, len(m.Nodes))
	for i, n := range m.Nodes {
		var err error
		if seen[i], err = daemon.Sums(n, "d"); err != nil {
			t.Fatal(err)
		}
		if i > 0 && fmt.Sprint(seen[i]) != fmt.Sprint(seen[0]) {
			t.Errorf("%s has other bytes than %s", n.Host.Name, m.Nodes[0].Host.Name)
		}
	}
	// Every line once.
	n := m.Nodes[2]
	out := n.Must("sh", "-c", `cat "$0"/rank-*/batch-*[0-9] | sort | sha256sum`, n.Mount()+"/datasets/d")
	var all []string
	for i := range 4 {
		part := text[i*len(text)/4 : (i+1)*len(text)/4]
		all = append(all, strings.Split(strings.TrimSuffix(string(part), "\n"), "\n")...)
	}
	slices.Sort(all)
	want := sha256.Sum256([]byte(strings.Join(all, "\n") + "\n"))
	if !strings.HasPrefix(out, hex.EncodeToString(want[:])) {
		t.Errorf("the records are not those of the source: %s", out)
	}
}

// A source on the disks of one node is read by all, through that node.
func TestASourceOfOneNode(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:3])
	dir := t.TempDir()
	first := m.Nodes[0]
	first.Must("mount", "-t", "tmpfs", "none", dir)
	t.Cleanup(func() { first.Must("umount", dir) })
	first.Must("sh", "-c", `seq 1 200000 > "$0"`, dir+"/numbers")
	text := first.Must("cat", dir+"/numbers")
	// When create returns a dataset is on all nodes, unless one of them was too slow for it.
	const waited = 5 * time.Second // for slow ones
	for i := range 5 {
		name, begun := fmt.Sprint("n", i), time.Now()
		first.Do("dataset", "create", name, "--source", "file:"+dir+"/numbers", "--as", "lines")
		if time.Since(begun) >= waited {
			m.Await(name)
		}
		for _, n := range m.Nodes[1:] {
			n.Must("test", "-d", n.Mount()+"/datasets/"+name)
		}
	}
	first.Do("dataset", "create", "d", "--source", "file:"+dir+"/numbers", "--as", "lines", "--ranks", "2", "--batch", "1000")
	for _, n := range m.Nodes {
		if got := n.Must("sh", "-c", `cat "$0"/rank-*/batch-*[0-9] | sort -n`, n.Mount()+"/datasets/d"); got != text {
			t.Errorf("on %s there are %d bytes that differ from the %d of the source", n.Host.Name, len(got), len(text))
		}
		if out := n.Do("dataset", "show", "d"); !strings.Contains(out, "ready") {
			t.Errorf("on %s: %s", n.Host.Name, out)
		}
	}
	for i, n := range m.Nodes {
		want := traffic{Received: records{200_000}, Nodes: 1}
		if i == 0 {
			want = traffic{Sent: records{400_000}, Nodes: 2}
		}
		if got := trafficOf(t, n); got != want {
			t.Errorf("on %s: %+v, want %+v", n.Host.Name, got, want)
		}
	}
	// What another node makes of it is read by all, through that node too.
	m.Nodes[1].Do("dataset", "create", "part", "--source", "dataset:d?records=150000-", "--batch", "1000")
	for _, n := range m.Nodes {
		if got := n.Must("sh", "-c", `cat "$0"/rank-0/batch-*[0-9]`, n.Mount()+"/datasets/part"); got == "" || !strings.HasSuffix(text, "\n150000\n"+got) {
			t.Errorf("on %s there are %d bytes that are not the last 50,000 lines", n.Host.Name, len(got))
		}
		if out := n.Do("dataset", "show", "part"); !strings.Contains(out, "ready") {
			t.Errorf("on %s: %s", n.Host.Name, out)
		}
		if out, err := n.Rankfs("dataset", "rm", "d"); err == nil || !strings.Contains(err.Error(), "part is made of it") {
			t.Errorf("on %s, removal of the dataset that another is made of: %s %v", n.Host.Name, out, err)
		}
	}
	// Without that node no other has it, and an open says so.
	first.Kill()
	n := m.Nodes[1]
	out, err := n.Tool("timeout", "200", "cat", n.Mount()+"/datasets/d@epoch=1,order=full/rank-0/batch-000000")
	if err == nil {
		t.Errorf("read %d bytes that no node has", len(out))
	}
	t.Log(err)
}

// traffic is what a daemon says that it and others had of each other: once in
// all, and once for each node.
type traffic struct {
	Received, Sent records
	Nodes          int
}

type records struct{ Records uint64 }

func trafficOf(t *testing.T, n *daemon.Place) traffic {
	t.Helper()
	var s struct {
		Peers struct {
			Received, Sent records
			Nodes          []struct {
				Host           string
				Received, Sent records
			}
		}
	}
	text := n.Must("cat", n.Mount()+"/.rankfs/status.json")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	all := traffic{s.Peers.Received, s.Peers.Sent, 0}
	for _, p := range s.Peers.Nodes {
		if p.Host == "" {
			t.Errorf("a node without a host: %s", text)
		}
		s.Peers.Received.Records -= p.Received.Records
		s.Peers.Sent.Records -= p.Sent.Records
		if p.Received.Records+p.Sent.Records > 0 {
			all.Nodes++
		}
	}
	if s.Peers.Received.Records != 0 || s.Peers.Sent.Records != 0 {
		t.Errorf("all nodes come to another sum than each: %s", text)
	}
	return all
}
