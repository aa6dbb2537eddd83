package nodes_test

import (
	"encoding/json"
	"strings"
	"testing"

	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A host gets another name after its node was admitted. On all nodes it is still the one
// that it was admitted as; either name finds it, and it says itself what to do.
func TestAHostOfAnotherName(t *testing.T) {
	t.Parallel()
	has, other, _ := onOneNode(t, 3)
	admitted, both := has.Host.Name, []*daemon.Place{has, other}
	has.Stop()
	has.Start("--host", "moved.example.com")
	for _, n := range both {
		eventually.Within(t, patience, "the node is shown with both names", func() bool {
			return called(t, n, admitted) == "moved.example.com"
		})
		if out := n.Do("node", "ls"); !strings.Contains(out, admitted+" (called moved.example.com)") {
			t.Errorf("on %s: %s", n.Host.Name, out)
		}
		// All of the source is on that host, whichever of its names mpirun has.
		for _, name := range []string{"moved", "moved.example.com", admitted} {
			if host, near := placed(t, n, name); host != admitted || near != 1 {
				t.Errorf("on %s, ranks on %s are on %s, where %.2f of the bytes are", n.Host.Name, name, host, near)
			}
		}
		for _, line := range strings.Split(n.Must("cat", n.Mount()+"/datasets/d/locality"), "\n")[1:] {
			if f := strings.Fields(line); len(f) > 0 && (f[5] != admitted || (f[4] == f[3]) != (f[2] == admitted)) {
				t.Errorf("on %s: %s", n.Host.Name, line)
			}
		}
	}
	if text := health(t, has); !strings.Contains(text, " host this host is called moved.example.com now") || !strings.Contains(text, "--host "+admitted+",") {
		t.Errorf("its health is %q", text)
	}
	eventually.Within(t, patience, "it is drained, once three vote", func() bool {
		_, err := other.Rankfs("node", "drain", "moved")
		return err == nil && strings.Contains(other.Do("node", "ls"), "draining")
	})
	other.Do("node", "drain", "--undo", "moved")
	has.Stop()
	has.Start("--host", admitted)
	for _, n := range both {
		eventually.Within(t, patience, "it has one name again, and all is well", func() bool {
			return called(t, n, admitted) == "" && health(t, n) == "ok\n"
		})
	}
}

// called is what the host of a node is called beside the name that it was admitted by, as
// a node says.
func called(t *testing.T, by *daemon.Place, host string) string {
	t.Helper()
	var s struct {
		Nodes []struct{ Host, Called string }
	}
	text := by.Do("--json", "node", "ls")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, n := range s.Nodes {
		if n.Host == host {
			return n.Called
		}
	}
	t.Fatalf("no node was admitted as %s: %s", host, text)
	return ""
}

// placed is the host on which a node would have the ranks of d that a list of hosts has on
// one, and how much of the bytes it has.
func placed(t *testing.T, by *daemon.Place, name string) (host string, near float64) {
	t.Helper()
	by.Must("sh", "-c", `echo "$1 slots=2" > "$0"`, by.Dir+"/hosts", name)
	var p struct {
		Nodes []struct {
			Host         string
			Bytes, Local int64
		}
	}
	text := by.Do("--json", "plan", "d", "--hostfile", by.Dir+"/hosts")
	if err := json.Unmarshal([]byte(text), &p); err != nil || len(p.Nodes) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	return p.Nodes[0].Host, float64(p.Nodes[0].Local) / float64(p.Nodes[0].Bytes)
}
