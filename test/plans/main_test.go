package plans_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// rankfs is the daemon and the command.
var rankfs string

func TestMain(m *testing.M) { os.Exit(daemon.Main(m, &rankfs)) }

// patience is how long one condition is waited for. It bounds a hang, on a machine
// that is busy with other things too.
const patience = 4 * time.Minute

const block = 1 << 20

// A team is a cluster of daemons, one on each datanode's host unless a test says
// otherwise.
type team struct {
	*daemon.Team
	t *testing.T
	c *cluster.Cluster
}

func newTeam(t *testing.T, c *cluster.Cluster, hosts []*cluster.Host) *team {
	t.Helper()
	return &team{daemon.NewTeam(t, rankfs, hosts, "--ram", "256MiB", "--hadoop-conf", c.Conf()), t, c}
}

// A corpus is a text in HDFS, two replicas of each block.
type corpus struct {
	dir       string
	text      []byte
	checksums string // a file with the XXH64 of each line
}

// put writes a text of so many blocks, as a file from each of the hosts, whose own
// datanode has a replica of it.
func put(t *testing.T, c *cluster.Cluster, blocks int, from ...*cluster.Host) *corpus {
	t.Helper()
	return putBlocks(t, c, blocks, block, from...)
}

// putBlocks is put with blocks of another size.
func putBlocks(t *testing.T, c *cluster.Cluster, blocks int, block int64, from ...*cluster.Host) *corpus {
	t.Helper()
	k := &corpus{dir: c.Dir(t), checksums: filepath.Join(t.TempDir(), "checksums")}
	var sums strings.Builder
	for i, h := range from {
		part := lines(i, blocks/len(from)*int(block))
		name := fmt.Sprintf("%s/%d", k.dir, i)
		h.Put(t, name, part, 2, block)
		if err := c.WaitReplicas(t.Context(), name, 2); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(part)) {
			fmt.Fprintf(&sums, "%016x\n", xxhash.Sum64String(line))
		}
		k.text = append(k.text, part...)
	}
	if err := os.WriteFile(k.checksums, []byte(sums.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

// lines is a text of so many bytes and no more, each line of it unlike any other.
func lines(file, n int) []byte {
	var b bytes.Buffer
	for i := 0; ; i++ {
		line := fmt.Sprintf("%02d %08d %s\n", file, i, strings.Repeat("abcdefghij", i%60))
		if b.Len()+len(line) > n {
			return b.Bytes()
		}
		b.WriteString(line)
	}
}

// create registers a corpus on the first node, and waits for it on all.
func (m *team) create(name string, k *corpus, options ...string) {
	m.t.Helper()
	m.Nodes[0].Do(append([]string{"dataset", "create", name, "--source", "hdfs://" + m.c.Nameservice() + k.dir, "--as", "lines"}, options...)...)
	m.Await(name)
}

// whole checks that a view on a node is the corpus, each line once. It is read again while
// its plan cannot be agreed on, or no namenode answers: to choose a leader, or to find that
// connections are dead once a link is back, may take a busy machine longer than an open
// waits.
func (k *corpus) whole(t *testing.T, n *daemon.Place, view string) {
	t.Helper()
	var out string
	var err error
	eventually.Within(t, patience, view+" is planned, and read", func() bool {
		out, err = n.Tool("bash", "-o", "pipefail", "-c", `cat "$0"/rank-*/batch-*[0-9] | LC_ALL=C sort | sha256sum`, n.Mount()+"/datasets/"+view)
		return err == nil || !strings.Contains(err.Error(), "No route to host") && !strings.Contains(err.Error(), "Device or resource busy")
	})
	if err != nil {
		t.Errorf("on %s, %s: %v", n.Host.Name, view, err)
	} else if !strings.HasPrefix(out, k.sorted()) {
		t.Errorf("on %s the lines of %s are not those of the source, once each: %s", n.Host.Name, view, out)
	}
}

func (k *corpus) sorted() string {
	all := strings.SplitAfter(string(k.text), "\n")
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(all, "")))
	return hex.EncodeToString(sum[:])
}
