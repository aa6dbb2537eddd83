package nodes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A job is an MPI program with ranks on all hosts of a team, side by side.
type job struct {
	*team
	agent, program string
	perNode        int
}

// newJob prepares a program of test/mpi.
func (m *team) newJob(program string, perNode int) *job {
	m.t.Helper()
	return &job{m, m.c.Agent(m.t), daemon.Built(m.t, program), perNode}
}

// run returns what the program says.
func (j *job) run(args ...string) (string, error) {
	return j.MPI(j.agent, j.perNode, j.program, args...)
}

// corpus writes a text to HDFS, each datanode a part of it, with two replicas of
// each block, and returns its folder, its size, and a file with the checksum of
// every line.
func corpus(t *testing.T, c *cluster.Cluster, size int, block int64) (dir string, bytes int, checksums string) {
	t.Helper()
	text, hosts := lines(size), c.DataNodes()
	dir = c.Dir(t)
	var sums strings.Builder
	for i, h := range hosts {
		part := text[i*len(text)/len(hosts) : (i+1)*len(text)/len(hosts)]
		h.Put(t, fmt.Sprintf("%s/%d", dir, i), part, 2, block)
		for line := range strings.Lines(string(part)) {
			fmt.Fprintf(&sums, "%016x\n", xxhash.Sum64String(line))
		}
	}
	checksums = filepath.Join(t.TempDir(), "checksums")
	if err := os.WriteFile(checksums, []byte(sums.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, len(text), checksums
}

// A job of eight ranks on four hosts reads an epoch in full order: every record
// once, nearly all of it where it lies, and each byte leaves HDFS once.
func TestAnEpochIsLocal(t *testing.T) {
	t.Parallel()
	c := cluster.Wide(t)
	dir, size, checksums := corpus(t, c, 64<<20, 1<<20)
	m := newTeam(t, c, c.DataNodes(), "--hadoop-conf", c.Conf())
	m.Nodes[0].Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir, "--as", "lines",
		"--ranks", "8", "--batch", "2048", "--order", "full", "--seed", "5")
	m.Await("d")
	var before [4]status
	for i, n := range m.Nodes {
		n.Status(&before[i])
	}
	out, err := m.newJob("map_verify", 2).run(append(m.Dirs("d"), checksums)...)
	if err != nil || !strings.Contains(out, "map_verify OK ranks=8") {
		t.Fatalf("%v\n%s", err, out)
	}
	var received, local uint64
	for i, n := range m.Nodes {
		var s status
		n.Status(&s)
		received += s.HDFS.Bytes - before[i].HDFS.Bytes
		local += s.HDFS.Local - before[i].HDFS.Local
	}
	t.Logf("%s\nreceived from HDFS %.3f of the dataset, %.3f of that from the own host", out,
		float64(received)/float64(size), float64(local)/float64(received))
	if float64(received) > 1.02*float64(size) {
		t.Errorf("%d bytes received for %d", received, size)
	}
	if float64(local) < 0.9*float64(received) {
		t.Errorf("%d bytes of %d are local", local, received)
	}
	// The same by the table that people read.
	var all, near int64
	table := m.Nodes[1].Must("cat", m.Dirs("d")[1]+"/locality")
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		var batch, node, hosts string
		var rank, bytes, here int64
		if _, err := fmt.Sscan(line, &batch, &rank, &node, &bytes, &here, &hosts); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if at := m.Nodes[rank/2].Host.Name; node != at {
			t.Errorf("%s of rank %d is planned for %s, and was read on %s", batch, rank, node, at)
		}
		all, near = all+bytes, near+here
	}
	t.Logf("%.3f of the bytes are read by a rank whose host has them", float64(near)/float64(all))
	if all != int64(size) || float64(near) < 0.9*float64(all) {
		t.Errorf("%d bytes of %d are near", near, all)
	}
}

// A status is what these tests want to know of one.
type status struct {
	HDFS struct{ Bytes, Local, Corrupt, Failures uint64 }
}

// A node that is killed in the middle takes its ranks with it. The others go on,
// and its ranks begin again elsewhere where they were, with the same bytes.
func TestJobOutlivesANode(t *testing.T) {
	t.Parallel()
	c := cluster.Wide(t)
	dir, _, checksums := corpus(t, c, 32<<20, 1<<20)
	m := newTeam(t, c, c.DataNodes(), "--hadoop-conf", c.Conf())
	m.Nodes[0].Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir, "--as", "lines",
		"--ranks", "6", "--batch", "512", "--order", "full", "--seed", "5")
	m.Await("d")
	eventually.Within(t, 30*time.Second, "three voters", func() bool { return m.Members(m.Nodes[0]).Voters() == 3 })
	// The job runs on three hosts; the fourth, which has no vote, only sends.
	var dead *daemon.Place
	s := m.Members(m.Nodes[0])
	for i, n := range m.Nodes {
		for _, one := range s.Nodes {
			if one.Host == n.Host.Name && !one.Voter {
				dead = n
				m.Nodes = append(m.Nodes[:i:i], m.Nodes[i+1:]...)
			}
		}
		if dead != nil {
			break
		}
	}
	if dead == nil {
		t.Fatalf("all vote: %+v", s)
	}
	j := m.newJob("map_verify", 2)
	type end struct {
		out string
		err error
	}
	ended := make(chan end, 1)
	go func() {
		out, err := j.run(append([]string{"-s", "60"}, append(m.Dirs("d"), checksums)...)...)
		ended <- end{out, err}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for m.opens() < 30 && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
	}
	dead.Kill()
	e := <-ended
	if e.err != nil || !strings.Contains(e.out, "map_verify OK ranks=6") {
		t.Fatalf("%v\n%s", e.err, e.out)
	}
	t.Log(e.out)
	eventually.Within(t, 30*time.Second, "the dead node is seen", func() bool {
		for _, one := range m.Members(m.Nodes[0]).Nodes {
			if one.Host == dead.Host.Name {
				return one.State == "down"
			}
		}
		return false
	})
	// All ranks on one host that is left: the same files.
	first, err := daemon.Sums(m.Nodes[0], "d")
	if err != nil {
		t.Fatal(err)
	}
	dead.Start()
	// The leader calls one that was away less and less often, every ten seconds
	// at last: until it does, that one knows nothing.
	eventually.Within(t, 30*time.Second, "the dataset is there again", func() bool {
		_, err := dead.Tool("test", "-d", dead.Mount()+"/datasets/d")
		return err == nil
	})
	again, err := daemon.Sums(dead, "d")
	if err != nil || fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("the node that came back has other bytes (%v)", err)
	}
}

// All daemons are killed and started anew, one after the other, under a job whose
// ranks wait for theirs. It ends with every record read once, and every byte right.
func TestAJobOutlivesARollingRestart(t *testing.T) {
	t.Parallel()
	c := cluster.Wide(t)
	dir, _, checksums := corpus(t, c, 32<<20, 1<<20)
	m := newTeam(t, c, c.DataNodes(), "--hadoop-conf", c.Conf())
	m.Nodes[0].Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir, "--as", "lines",
		"--ranks", "8", "--batch", "512", "--order", "full", "--seed", "5")
	m.agree("d")
	j := m.newJob("map_verify", 2)
	ended := make(chan error, 1)
	var out string
	go func() {
		var err error
		out, err = j.run(append([]string{"-w", "60", "-s", "300", "-m"}, append(m.Dirs("d"), checksums)...)...)
		ended <- err
	}()
	for i, n := range m.Nodes {
		before := opened(n)
		eventually.Within(t, time.Minute, "its ranks read", func() bool { return opened(n) > before+4 })
		n.Kill()
		n.Start()
		eventually.Within(t, time.Minute, "its ranks read again", func() bool { return opened(n) > 4 })
		select {
		case err := <-ended:
			t.Fatalf("it ended before daemon %d was started anew: %v\n%s", i, err, out)
		default:
		}
		m.voting()
	}
	if err := <-ended; err != nil || !strings.Contains(out, "map_verify OK ranks=8") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(out)
}

// opened is how many batches were opened on a node.
func opened(n *daemon.Place) uint64 {
	var s struct{ Counters struct{ Opens uint64 } }
	n.Status(&s)
	return s.Counters.Opens
}

// opens is how many batches were opened on all nodes.
func (m *team) opens() (n uint64) {
	for _, node := range m.Nodes {
		n += opened(node)
	}
	return n
}
