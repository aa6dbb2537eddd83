package nodes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// A pace is how far ranks may read, by steps: they are as far as the test, however fast
// either is.
type pace struct {
	t     *testing.T
	file  string
	steps int
}

func newPace(t *testing.T) *pace {
	p := &pace{t: t, file: filepath.Join(t.TempDir(), "until")}
	p.goOn(0)
	return p
}

// goOn lets the ranks read so many steps more.
func (p *pace) goOn(steps int) {
	p.t.Helper()
	p.steps += steps
	if err := os.WriteFile(p.file, fmt.Appendln(nil, p.steps), 0o600); err != nil {
		p.t.Error(err)
	}
}

// toTheEnd lets them read all there is.
func (p *pace) toTheEnd() { p.goOn(1 << 30) }

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
	// On a busy machine ranks may begin too long after each other to be planned for together:
	// then the next epoch, of which it is known where they are.
	for epoch := 0; !m.isLocal(fmt.Sprintf("d@epoch=%d", epoch), size, checksums); epoch++ {
		if epoch == 4 {
			t.Fatal("ranks are planned for other hosts than they read on")
		}
		for _, n := range m.Nodes {
			n.Do("cache", "evict", "d")
		}
	}
}

// isLocal reads a view by two ranks on each node, and checks that it is local. It reports
// whether the plan is for where they were.
func (m *team) isLocal(view string, size int, checksums string) bool {
	t := m.t
	t.Helper()
	var before [4]status
	for i, n := range m.Nodes {
		n.Status(&before[i])
	}
	out, err := m.newJob("map_verify", 2).run(append(m.Dirs(view), checksums)...)
	if err != nil || !strings.Contains(out, "map_verify OK ranks=8") {
		t.Fatalf("%v\n%s", err, out)
	}
	var all, near int64
	table := m.Nodes[1].Must("cat", m.Dirs(view)[1]+"/locality")
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		var batch, node, hosts string
		var rank, bytes, here int64
		if _, err := fmt.Sscan(line, &batch, &rank, &node, &bytes, &here, &hosts); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if at := m.Nodes[rank/2].Host.Name; node != at {
			t.Logf("%s of rank %d is planned for %s, and was read on %s", batch, rank, node, at)
			return false
		}
		all, near = all+bytes, near+here
	}
	t.Logf("%.3f of the bytes are read by a rank whose host has them", float64(near)/float64(all))
	if all != int64(size) || float64(near) < 0.9*float64(all) {
		t.Errorf("%d bytes of %d are near", near, all)
	}
	// A node or a datanode may be slow, too: what is read from elsewhere then, daemons count.
	var received, local, spare uint64
	for i, n := range m.Nodes {
		var s status
		n.Status(&s)
		received += s.HDFS.Bytes - before[i].HDFS.Bytes
		local += s.HDFS.Local - before[i].HDFS.Local
		spare += (s.Peers.Hedges - before[i].Peers.Hedges + s.HDFS.Failures - before[i].HDFS.Failures) << 20 // a block at most
	}
	t.Logf("%s\nreceived from HDFS %.3f of the dataset, %.3f of that from the own host", out,
		float64(received)/float64(size), float64(local)/float64(received))
	if float64(received) > 1.02*float64(size)+float64(spare) {
		t.Errorf("%d bytes received for %d, %d of them as a datanode or a node was slow", received, size, spare)
	}
	if float64(local+spare) < 0.9*float64(received) {
		t.Errorf("%d bytes of %d are local", local, received)
	}
	return true
}

// A status is what these tests want to know of one.
type status struct {
	HDFS  struct{ Bytes, Local, Corrupt, Failures uint64 }
	Peers struct{ Hedges uint64 }
}

// A node that is killed in the middle takes its ranks with it. The others go on,
// and its ranks begin again elsewhere where they were, with the same bytes.
func TestJobOutlivesANode(t *testing.T) {
	t.Parallel()
	c := cluster.Wide(t)
	dir, _, checksums := corpus(t, c, 32<<20, 1<<20)
	m := newTeam(t, c, c.DataNodes(), "--hadoop-conf", c.Conf())
	m.Nodes[0].Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir, "--as", "lines",
		"--ranks", "6", "--batch", "1024", "--order", "full", "--seed", "5")
	m.Await("d")
	eventually.Within(t, patience, "three voters", func() bool { return m.Members(m.Nodes[0]).Voters() == 3 })
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
	ended, pace := make(chan end, 1), newPace(t)
	defer pace.toTheEnd() // or it would not end, if this fails
	go func() {
		out, err := j.run(append([]string{"-u", pace.file}, append(m.Dirs("d"), checksums)...)...)
		ended <- end{out, err}
	}()
	pace.goOn(10)
	eventually.Within(t, patience, "the ranks read", func() bool { return m.opens() >= 30 })
	dead.Kill()
	pace.toTheEnd()
	e := <-ended
	if e.err != nil || !strings.Contains(e.out, "map_verify OK ranks=6") {
		t.Fatalf("%v\n%s", e.err, e.out)
	}
	t.Log(e.out)
	eventually.Within(t, patience, "the dead node is seen", func() bool {
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
	eventually.Within(t, patience, "the dataset is there again", func() bool {
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
	pace := newPace(t)
	defer pace.toTheEnd() // or it would not end, if this fails
	go func() {
		var err error
		out, err = j.run(append([]string{"-w", "240", "-u", pace.file, "-m"}, append(m.Dirs("d"), checksums)...)...)
		ended <- err
	}()
	for i, n := range m.Nodes {
		before := n.Opened()
		pace.goOn(10)
		eventually.Within(t, patience, "its ranks read", func() bool { return n.Opened() > before+4 })
		n.Kill()
		n.Start()
		pace.goOn(10)
		eventually.Within(t, patience, "its ranks read again", func() bool { return n.Opened() > 4 })
		select {
		case err := <-ended:
			t.Fatalf("it ended before daemon %d was started anew: %v\n%s", i, err, out)
		default:
		}
		m.voting()
	}
	pace.toTheEnd()
	if err := <-ended; err != nil || !strings.Contains(out, "map_verify OK ranks=8") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(out)
}

// opens is how many batches were opened on all nodes.
func (m *team) opens() (n uint64) {
	for _, node := range m.Nodes {
		n += node.Opened()
	}
	return n
}
