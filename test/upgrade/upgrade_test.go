// Package upgrade_test has a cluster of the release before go over to this one.
package upgrade_test

import (
	"encoding/json"
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

// patience is how long one condition is waited for. It bounds a hang, on a machine
// that is busy with other things too.
const patience = 4 * time.Minute

// wentOver is what the leader says when all nodes are upgraded.
const wentOver = "takes commands of its version from now on"

// build makes a daemon.
func build(t *testing.T, tags ...string) (program string) {
	t.Helper()
	program, remove, err := daemon.Build(tags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	return program
}

// Three nodes whose daemons know the commands of the release before are upgraded
// one after the other under a job, one of them after it was killed. The job ends
// with every record read once and right. New epochs of the dataset, which is in HDFS, are
// planned meanwhile, by old nodes and new ones together. Only when the last node is upgraded does the cluster
// go over, and takes a member in.
func TestRollingUpgradeUnderAJob(t *testing.T) {
	before, now := build(t, "rankfs_release_before"), build(t)
	c := cluster.Plans(t)
	hosts, options := c.DataNodes(), []string{"--ram", "256MiB", "--pool-ram", "16MiB", "--hadoop-conf", c.Conf()}
	m := daemon.NewTeam(t, before, hosts[:3], options...)
	checksums := create(t, c, m.Nodes[0])
	m.Await("d")
	voting(t, m)
	j := start(t, c, m, checksums)
	for i, n := range m.Nodes {
		reads(t, j, n)
		if i == 2 {
			waitedFor(t, m, n)
		}
		refused(t, m)
		if i == 1 {
			n.Kill()
		} else {
			n.Do("umount", "--lazy", n.Mount())
			n.Stop()
		}
		n.Program(now)
		n.Start()
		reads(t, j, n)
		voting(t, m)
		agree(t, i+1, n, m.Nodes[(i+1)%3])
	}
	j.goOn(t, 1<<30)
	if err := <-j.ended; err != nil || !strings.Contains(j.out, "map_verify OK ranks=6") {
		t.Fatalf("%v\n%s", err, j.out)
	}
	t.Log(j.out)
	takesMember(t, m, daemon.New(t, now, hosts[3], append(options, "--listen", hosts[3].IP+daemon.Port)...))
}

// create makes a dataset, d, of 150,000 lines in HDFS, and returns a file with the
// checksum of each.
func create(t *testing.T, c *cluster.Cluster, n *daemon.Place) (checksums string) {
	t.Helper()
	var text, sums strings.Builder
	for i := range 150_000 {
		line := fmt.Sprintf("%08d %s\n", i, strings.Repeat("abcdefghij", i%12))
		text.WriteString(line)
		fmt.Fprintf(&sums, "%016x\n", xxhash.Sum64String(line))
	}
	dir := c.Dir(t)
	n.Host.Put(t, dir+"/lines", []byte(text.String()), 2, 1<<20)
	checksums = filepath.Join(t.TempDir(), "checksums")
	if err := os.WriteFile(checksums, []byte(sums.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	n.Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir, "--as", "lines",
		"--ranks", "6", "--batch", "200", "--order", "full", "--seed", "5")
	return checksums
}

// voting waits until one node leads, all are up, and all have votes.
func voting(t *testing.T, m *daemon.Team) {
	t.Helper()
	for _, n := range m.Nodes {
		eventually.Within(t, patience, "one leads, three vote, all are up", func() bool {
			var s struct {
				Leader string
				Nodes  []struct {
					State string
					Voter bool
				}
			}
			text, err := n.Rankfs("--json", "node", "ls")
			if err != nil || json.Unmarshal([]byte(text), &s) != nil || s.Leader == "" || len(s.Nodes) != len(m.Nodes) {
				return false
			}
			for _, one := range s.Nodes {
				if !one.Voter || one.State != "up" {
					return false
				}
			}
			return true
		})
	}
}

// waitedFor has one of the upgraded nodes lead, which says that the last is waited
// for.
func waitedFor(t *testing.T, m *daemon.Team, last *daemon.Place) {
	t.Helper()
	eventually.Within(t, patience, "a node of this release leads, and says what it waits for", func() bool {
		for _, n := range m.Nodes {
			if strings.Contains(n.Log(), "is of an older release; upgrade it") {
				return true
			}
		}
		var s struct{ Self, Leader string }
		text, err := last.Rankfs("--json", "node", "ls")
		if err == nil && json.Unmarshal([]byte(text), &s) == nil && s.Leader == s.Self {
			last.Kill()
			last.Start()
		}
		return false
	})
	voting(t, m)
}

// refused asks for what there was not in the release before, while a node has it.
func refused(t *testing.T, m *daemon.Team) {
	t.Helper()
	for _, n := range m.Nodes {
		for _, command := range [][]string{{"token", "create"}, {"shuffle", "create", "j"}} {
			if _, err := n.Answer(command...); err == nil || !strings.Contains(err.Error(), "before all nodes are of this release") {
				t.Errorf("on %s: %v in a cluster that knows no such thing: %v", n.Host.Name, command, err)
			}
		}
		if strings.Contains(n.Log(), wentOver) {
			t.Errorf("%s: the cluster has gone over with a node of the release before in it", n.Host.Name)
		}
	}
}

// agree begins the queue of an epoch that no rank has read on one node, and works it
// off on another: both know its plan, and together they have handed out each batch once.
func agree(t *testing.T, epoch int, n, other *daemon.Place) {
	t.Helper()
	const batches = 78
	queue := fmt.Sprintf("/datasets/d@epoch=%d,ranks=6,batch=2000,order=full,seed=5/rank-1/queue", epoch)
	begun := strings.SplitAfter(n.Must("head", "-n", "3", n.Mount()+queue), "\n")
	if len(begun) < 3 {
		t.Fatalf("epoch %d: %q of the queue on %s", epoch, begun, n.Host.Name)
	}
	// The third was not finished, so it is handed out again.
	given := map[string]int{}
	for line := range strings.Lines(begun[0] + begun[1] + other.Must("cat", other.Mount()+queue)) {
		_, path, _ := strings.Cut(strings.Fields(line)[0], "/datasets/")
		given[path]++
	}
	for path, times := range given {
		if times != 1 {
			t.Errorf("epoch %d: %s was handed out %d times", epoch, path, times)
		}
	}
	for _, of := range []*daemon.Place{n, other} {
		eventually.Within(t, patience, "the plan is known on "+of.Host.Name, func() bool {
			return strings.Contains(of.Must("cat", of.Mount()+"/.rankfs/plans"), view(epoch)+",")
		})
	}
	if len(given) != batches {
		t.Errorf("epoch %d: %d batches were handed out on %s and %s, want %d", epoch, len(given), n.Host.Name, other.Host.Name, batches)
	}
}

// takesMember waits until the cluster has gone over, and lets a member in.
func takesMember(t *testing.T, m *daemon.Team, member *daemon.Place) {
	t.Helper()
	var token string
	eventually.Within(t, patience, "the cluster makes a token for a member", func() bool {
		out, err := m.Nodes[1].Rankfs("token", "create")
		token = strings.TrimSpace(out)
		return err == nil
	})
	logs := ""
	for _, n := range m.Nodes {
		logs += n.Log()
	}
	if strings.Count(logs, wentOver) != 1 {
		t.Errorf("%d times it was said that the cluster has gone over", strings.Count(logs, wentOver))
	}
	m.Join(member, m.Nodes[0], token)
	if _, err := member.Answer("shuffle", "create", "j"); err != nil {
		t.Errorf("there is no pool when all nodes are of this release: %v", err)
	}
	all := &daemon.Team{T: t, Nodes: []*daemon.Place{m.Nodes[2], member}}
	all.Await("d")
	agree(t, 9, member, m.Nodes[2])
	if _, err := member.Answer("token", "create"); err == nil {
		t.Error("a member makes tokens")
	}
}
