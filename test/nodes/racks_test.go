package nodes_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/cluster"
)

// What the own host does not have comes from the own rack, if the administrator
// of HDFS said who is in it: two hosts have nearly everything, one in each rack. And what a
// node writes into the shuffle pool has its copies in the other rack.
func TestPlanByRacks(t *testing.T) {
	t.Parallel()
	c := cluster.Wide(t)
	hosts, dir := c.DataNodes(), c.Dir(t)
	const block = 1 << 20
	for i, blocks := range []int{6, 1, 6, 1} { // data1 and data2 are in a rack
		hosts[i].Put(t, fmt.Sprintf("%s/%d", dir, i), make([]byte, blocks*block), 1, block)
	}
	m := newTeam(t, c, hosts, "--hadoop-conf", c.Conf(), "--pool-ram", "16MiB")
	first := m.Nodes[0]
	first.Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir, "--as", "fixed:1024", "--ranks", "4", "--batch", "chunk", "--order", "full")
	m.Await("d")
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte(strings.Join(names, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range m.Nodes { // the same on each
		var p struct {
			Racks        int
			Plan, Strict struct {
				Bytes struct{ Local, Near, Remote int }
			}
		}
		text := n.Do("plan", "d", "--hostfile", file, "--json")
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		// Three of data1's six are for its own rank, three for data2's.
		if b := p.Plan.Bytes; p.Racks != 2 || b.Local != 8*block || b.Near != 6*block || b.Remote != 0 {
			t.Errorf("on %s: %s", n.Host.Name, text)
		}
		if p.Strict.Bytes.Remote == 0 {
			t.Errorf("fixed ranks do as well: %s", text)
		}
	}
	if text := first.Do("plan", "d", "--hostfile", file); !strings.Contains(text, "OWN RACK") {
		t.Error(text)
	}

	defer endJob(t, m.Nodes)
	const written = 12
	first.Do("shuffle", "create", "job/s", fmt.Sprint("maps=", written), "copies=2")
	inJob(first, `for i in $(seq -f %06g 0 "$2"); do echo "$i" > "$1/s/.map-$i.0"; mv "$1/s/.map-$i.0" "$1/s/map-$i"; done`, fmt.Sprint(written-1))
	kept := keptBy(t, first, "job/s")
	if kept["data1"] != written || kept["data2"] != 0 || kept["data3"]+kept["data4"] != written {
		t.Errorf("of %d maps that data1 has written, which is in one rack with data2, nodes have %v", written, kept)
	}
}
