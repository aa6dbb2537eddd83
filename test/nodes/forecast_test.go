package nodes_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
)

// What rankfs simulate says of the bytes of an epoch is what daemons come to that have
// nothing in their caches: each chunk leaves the source once, and so many bytes go from
// node to node, wherever ranks read, and whether they read what is near or not.
func TestPredictedBytes(t *testing.T) {
	t.Parallel()
	const nodes, ranks, chunks, block, record, batch = 3, 6, 24, 1 << 20, 4096, 32
	c := cluster.Wide(t)
	dir := c.Dir(t)
	hosts := c.DataNodes()[:nodes]
	text := lines(block)[:block] // any bytes
	for i := range chunks {
		hosts[i%ranks/(ranks/nodes)].Put(t, fmt.Sprintf("%s/%02d", dir, i), text, 1, block)
	}
	hostfile, slots := filepath.Join(t.TempDir(), "hosts"), ""
	for _, h := range hosts {
		slots += fmt.Sprintf("%s slots=%d\n", h.Name, ranks/nodes)
	}
	if err := os.WriteFile(hostfile, []byte(slots), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, assign := range []string{"strict", "local"} {
		t.Run(assign, func(t *testing.T) {
			m := newTeam(t, c, hosts, "--hadoop-conf", c.Conf())
			first := m.Nodes[0]
			first.Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir, "--as", fmt.Sprintf("fixed:%d", record),
				"--ranks", fmt.Sprint(ranks), "--batch", fmt.Sprint(batch), "--order", "full", "--seed", "3")
			m.Await("d")
			view := fmt.Sprintf("d@epoch=%d,assign=%s", uint64(1<<64-1), assign) // after which none is, of which batches could be made ready
			var said struct {
				Policies []struct {
					Epochs []struct {
						Source int64 `json:"source_bytes"`
						Peers  int64 `json:"peer_bytes"`
					}
				}
			}
			if err := json.Unmarshal([]byte(first.Do("--json", "simulate", view, "--epochs", "1", "--step", "1ms")), &said); err != nil {
				t.Fatal(err)
			}
			if assign != "strict" { // ranks that come late would not be planned for
				first.Do("plan", view, "--hostfile", hostfile, "--settle")
			}
			read := make([]error, nodes)
			daemon.Each(m.Nodes, func(i int, n *daemon.Place) {
				each := ranks / nodes
				_, read[i] = n.Tool("bash", "-c", `cd "$0" && for r in $(seq $1 $2); do cat rank-$r/batch-*[0-9] >/dev/null & done; wait`,
					n.Mount()+"/datasets/"+view, fmt.Sprint(i*each), fmt.Sprint(i*each+each-1))
			})
			for _, err := range read {
				if err != nil {
					t.Fatal(err)
				}
			}
			var fetched, received, hedged int64
			for _, n := range m.Nodes {
				var s struct {
					HDFS  struct{ Bytes int64 }
					Peers struct {
						Hedges   int64
						Received struct{ Records int64 }
					}
				}
				n.Status(&s)
				fetched += s.HDFS.Bytes
				received += s.Peers.Received.Records * record
				hedged += s.Peers.Hedges * batch * record // at most
			}
			want := said.Policies[0].Epochs[0]
			t.Logf("predicted: %d bytes from the source, %d from peers; they were %d and %d", want.Source, want.Peers, fetched, received)
			if want.Source != chunks*block || fetched < want.Source || fetched > want.Source*102/100+hedged {
				t.Errorf("%d bytes came from the source, %d were predicted, and the dataset has %d", fetched, want.Source, chunks*block)
			}
			if off := max(received-want.Peers, want.Peers-received); off > hedged {
				t.Errorf("%d bytes came from other nodes, %d were predicted; %d may have come from the source as one was slow", received, want.Peers, hedged)
			}
		})
	}
}
