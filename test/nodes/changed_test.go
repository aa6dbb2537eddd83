package nodes_test

import (
	"errors"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A source that lies on one node's disks is changed: another node, which has all of it in
// memory, serves no byte of what it was any more, and says why, until it is indexed again.
// What is made of it is no better.
func TestAChangedSourceOfAnotherNode(t *testing.T) {
	t.Parallel()
	has, other, path := onOneNode(t, 2)
	for _, name := range []string{"d", "part"} {
		other.Do("warm", name)
		other.Must("cat", other.Mount()+"/datasets/"+name+"/rank-0/batch-000000")
	}
	has.Must("sh", "-c", `seq 20001 30000 > "$0"`, path)
	for _, name := range []string{"d", "part"} {
		awaitStale(t, other, name)
		for _, command := range [][]string{{"warm", name}, {"cache", "pin", name}} {
			if out, err := other.Rankfs(command...); err == nil || !strings.Contains(err.Error(), "rankfs dataset refresh "+name) {
				t.Errorf("rankfs %s: %s %v", strings.Join(command, " "), out, err)
			}
		}
		for _, command := range [][]string{{"dataset", "ls"}, {"dataset", "show", name}, {"plan", name}, {"explain", name}, {"simulate", name}} {
			if out := other.Do(command...); !strings.Contains(out, "rankfs dataset refresh "+name) && !strings.Contains(out, "stale") {
				t.Errorf("rankfs %s: %s", strings.Join(command, " "), out)
			}
		}
		eventually.Within(t, patience, "health says it", func() bool { // it looks every two seconds
			return strings.Contains(other.Must("cat", other.Mount()+"/.rankfs/health"), "stale dataset "+name)
		})
	}
	if _, err := other.Rankfs("dataset", "verify", "d"); err == nil || !strings.Contains(err.Error(), "rankfs dataset refresh d") {
		t.Errorf("verified where it is not, while it has changed: %v", err)
	}
	there := "on host " + has.Host.Name
	for _, command := range [][]string{{"dataset", "show", "d"}, {"plan", "d"}} {
		if out := strings.Join(strings.Fields(other.Do(command...)), " "); !strings.Contains(out, "index it again "+there+" with: rankfs dataset refresh d") {
			t.Errorf("rankfs %s: %s", strings.Join(command, " "), out)
		}
	}
	if _, err := other.Rankfs("dataset", "refresh", "d"); err == nil || !strings.Contains(err.Error(), "it is "+there+"; refresh the dataset there with: rankfs dataset refresh d") {
		t.Errorf("refreshed where it is not: %v", err)
	}
	has.Do("dataset", "refresh", "d")
	other.Do("dataset", "refresh", "part")
	for name, want := range map[string]string{"d": "20001 30000", "part": "20001 25000"} {
		got := other.Must("sh", "-c", `cat "$0"/rank-*/batch-*[0-9] | sort | sed -n '1p;$p' | xargs`, other.Mount()+"/datasets/"+name)
		if got != want+"\n" {
			t.Errorf("%s goes from %q, want %s", name, got, want)
		}
		if out := other.Do("dataset", "show", name); !strings.Contains(out, "ready") {
			t.Errorf("indexed again: %s", out)
		}
	}
	has.Do("dataset", "verify", "d")
	if _, err := other.Rankfs("dataset", "verify", "d"); err == nil || !strings.Contains(err.Error(), "verify it there") {
		t.Errorf("verified where it is not: %v", err)
	}
}

// awaitStale waits until a node that has a batch in memory does not open it any more.
func awaitStale(t *testing.T, n *daemon.Place, dataset string) {
	t.Helper()
	eventually.Done(t, patience, "the batch is not opened any more", func() error {
		out, err := n.Tool("cat", n.Mount()+"/datasets/"+dataset+"/rank-0/batch-000000")
		if err == nil {
			return errors.New("it begins with " + out[:5])
		}
		if !strings.Contains(err.Error(), "Stale file handle") {
			return err
		}
		return nil
	})
}

// A node is killed on whose disks a source lies: what another node has in memory is opened
// there, what it has not cannot be opened, and no reader is told that the source has changed.
func TestASourceOfANodeThatIsDown(t *testing.T) {
	t.Parallel()
	has, other, _ := onOneNode(t, 3)
	for _, name := range []string{"d", "part"} {
		other.Do("warm", name, "--rank", "0")
	}
	first := func(name, rank string) (string, error) {
		return other.Tool("head", "-n", "1", other.Mount()+"/datasets/"+name+"/"+rank+"/batch-000000")
	}
	has.Kill()
	eventually.Done(t, patience, "the node is known to be down", func() error {
		if out := other.Do("dataset", "show", "d"); !strings.Contains(out, "the source is on node") {
			return errors.New(out)
		}
		return nil
	})
	for _, name := range []string{"d", "part"} {
		if out, err := first(name, "rank-0"); out != "1\n" || err != nil {
			t.Errorf("%s, in memory: %q, %v", name, out, err)
		}
		if out, err := first(name, "rank-1"); err == nil || !strings.Contains(err.Error(), "No route to host") {
			t.Errorf("%s, not in memory: %q, %v", name, out, err)
		}
		if out := other.Do("dataset", "show", name); !strings.Contains(out, "node ls") || strings.Contains(out, "refresh") {
			t.Errorf("rankfs dataset show %s: %s", name, out)
		}
	}
	has.Start()
	for _, name := range []string{"d", "part"} {
		eventually.Within(t, patience, "all of it is there again", func() bool {
			_, err := first(name, "rank-1")
			return err == nil
		})
	}
}

// onOneNode has a team of so many, with d, a source on the disks of one of two of them, and
// part, which is made of it.
func onOneNode(t *testing.T, nodes int) (has, other *daemon.Place, path string) {
	t.Helper()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:nodes])
	has, other = m.Nodes[0], m.Nodes[1]
	dir := t.TempDir()
	has.Must("mount", "-t", "tmpfs", "none", dir)
	t.Cleanup(func() { has.Must("umount", "-l", dir) })
	path = dir + "/numbers"
	has.Must("sh", "-c", `seq 1 10000 > "$0"`, path)
	has.Do("dataset", "create", "d", "--source", "file:"+path, "--as", "lines", "--ranks", "2", "--batch", "500")
	other.Do("dataset", "create", "part", "--source", "dataset:d?records=0-4999", "--ranks", "2", "--batch", "500")
	return has, other, path
}
