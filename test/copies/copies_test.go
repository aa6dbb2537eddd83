// Package copies_test reads an LMDB that is in HDFS through a mount.
package copies_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clib "github.com/bmatsuo/lmdb-go/lmdb"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// limit bounds each wait: it turns a hang into a failure.
const limit = 4 * time.Minute

// newPlace is on a datanode, with little memory and a disk.
func newPlace(t *testing.T, c *cluster.Cluster) *daemon.Place {
	t.Helper()
	p := daemon.New(t, daemon.Program(t), c.Host("data1"), "--ram", "16MiB", "--hadoop-conf", c.Conf(), "--hdfs-user", "root")
	p.Options("--nvme", p.Dir+"/nvme:64MiB")
	return p
}

// status returns the state of a dataset, and what copies take of the disk.
func status(t *testing.T, p *daemon.Place) (datasets map[string]string, copies int64) {
	t.Helper()
	var s struct {
		Tiers []struct {
			Name         string
			Copies, Used int64
		}
		Datasets []struct{ Name, State string }
	}
	p.Status(&s)
	datasets = make(map[string]string)
	for _, d := range s.Datasets {
		datasets[d.Name] = d.State
	}
	for _, tier := range s.Tiers {
		if copies += tier.Copies; tier.Used < tier.Copies {
			t.Errorf("tier %s has %d bytes used, copies %d", tier.Name, tier.Used, tier.Copies)
		}
	}
	return datasets, copies
}

// files are the copies on the disk.
func files(t *testing.T, p *daemon.Place) []string {
	t.Helper()
	names, err := filepath.Glob(p.Dir + "/nvme/copies/*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A database in HDFS is copied once, served from the copy over restarts, goes
// stale with its file, and the copy goes with the last dataset.
func TestLMDBInHDFS(t *testing.T) {
	c := cluster.Shared(t)
	values, content := database(t)
	dir := c.Dir(t)
	put(t, c, dir+"/data.mdb", content)
	p := newPlace(t, c)
	p.Start()
	sum := fmt.Sprintf("%x", sha256.Sum256(bytes.Join(values, nil)))
	read := []string{"sh", "-ec", "cat " + p.Mount() + "/datasets/a/rank-0/batch-?????? | sha256sum"}
	for _, name := range []string{"a", "b"} {
		p.Do("dataset", "create", name, "--source", "hdfs://rankfs"+dir, "--as", "lmdb", "--db", name, "--batch", "50")
	}
	if got := p.Must(read[0], read[1:]...); !strings.HasPrefix(got, sum) {
		t.Error("the records are not those of the database")
	}
	if _, copies := status(t, p); copies < int64(len(content)) || len(files(t, p)) != 2 {
		t.Errorf("copies take %d bytes, in %v", copies, files(t, p))
	}

	p.Stop()
	p.Start()
	if got := p.Must(read[0], read[1:]...); !strings.HasPrefix(got, sum) {
		t.Error("after a restart the records are others")
	}
	p.Do("dataset", "rm", "b")
	if len(files(t, p)) != 2 {
		t.Error("the copy went with one of two datasets")
	}

	// The copy is lost: an open waits until it is there again.
	p.Stop()
	for _, f := range append(files(t, p), slabs(p)...) {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	p.Start()
	if got := p.Must(read[0], read[1:]...); !strings.HasPrefix(got, sum) {
		t.Error("with a copy made anew the records are others")
	}

	client, err := c.Host("data1").HDFS("root")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Remove(dir + "/data.mdb"); err != nil {
		t.Fatal(err)
	}
	put(t, c, dir+"/data.mdb", content)
	eventually.Within(t, limit, "it is noticed that the file was written anew", func() bool {
		datasets, _ := status(t, p)
		return datasets["a"] == "stale"
	})
	if out, err := p.Tool(read[0], read[1:]...); err == nil && strings.HasPrefix(out, sum) {
		t.Error("batches of a stale dataset can be opened")
	}
	p.Do("dataset", "refresh", "a")
	if got := p.Must(read[0], read[1:]...); !strings.HasPrefix(got, sum) {
		t.Error("after a refresh the records are others")
	}
	eventually.Within(t, limit, "the old copy is gone", func() bool { return len(files(t, p)) == 2 })
	p.Do("dataset", "rm", "a")
	eventually.Within(t, limit, "with no dataset there is no copy", func() bool { // what is made ahead may read it still
		_, copies := status(t, p)
		return copies == 0 && len(files(t, p)) == 0
	})
}

// One node of a cluster copies the database, and gives of it to the others. When
// it dies in the middle of their reading another one does, and they go on.
func TestOneCopyInACluster(t *testing.T) {
	c := cluster.Shared(t)
	values, content := database(t)
	dir := c.Dir(t)
	put(t, c, dir+"/data.mdb", content)
	m := daemon.Gather(t, daemon.Program(t), c.DataNodes()[:3], "--ram", "64MiB", "--hadoop-conf", c.Conf(), "--hdfs-user", "root")
	for _, n := range m.Nodes {
		n.Options("--nvme", n.Dir+"/nvme:64MiB")
	}
	m.Found()
	maker := m.Nodes[1]
	maker.Do("dataset", "create", "a", "--source", "hdfs://rankfs"+dir, "--as", "lmdb", "--db", "a", "--batch", "50")
	m.Await("a")

	// Each view has batches of its own, which no node has in its cache yet.
	sum := fmt.Sprintf("%x", sha256.Sum256(bytes.Join(values, nil)))
	read := func(n *daemon.Place, batches ...int) {
		for _, batch := range batches {
			view := fmt.Sprintf("%s/datasets/a@batch=%d", n.Mount(), batch)
			if got, err := n.Tool("bash", "-c", `set -o pipefail; cat "$0"/rank-0/batch-*[0-9] | sha256sum`, view); err != nil || !strings.HasPrefix(got, sum) {
				t.Errorf("%s reads other records in batches of %d: %q, %v", n.Host.Name, batch, got, err)
			}
		}
	}
	for _, n := range m.Nodes {
		read(n, 50)
		hosts := strings.TrimSpace(n.Must("getfattr", "--only-values", "-n", "user.rankfs.hosts", n.Mount()+"/datasets/a/rank-0/batch-000001"))
		if hosts != maker.Host.Name {
			t.Errorf("as %s has it the batch is on %q", n.Host.Name, hosts)
		}
	}
	if got := holders(t, m); !slices.Equal(got, []string{maker.Host.Name}) {
		t.Errorf("there are copies on %v", got)
	}
	if n := fetched(m); n < int64(len(content)) || n > int64(len(content))*11/10 {
		t.Errorf("%d bytes were fetched for a file of %d", n, len(content))
	}

	maker = m.Nodes[2]
	maker.Do("dataset", "refresh", "a")
	eventually.Within(t, limit, "the copy is where the dataset was made anew", func() bool {
		return slices.Equal(holders(t, m), []string{maker.Host.Name})
	})

	others := m.Nodes[:2]
	var reading sync.WaitGroup
	for i, n := range others {
		reading.Go(func() { read(n, 40+i, 30+i, 20+i, 10+i, 8+i, 6+i) })
	}
	maker.Kill()
	reading.Wait()
	for _, n := range others {
		read(n, 17)
	}
	eventually.Within(t, limit, "with one node gone one of the others has a copy", func() bool {
		return len(holders(t, m, others...)) == 1
	})

	maker.Start()
	for _, n := range m.Nodes {
		read(n, 13)
	}
	m.Nodes[0].Do("dataset", "rm", "a")
	eventually.Within(t, limit, "the copies go with the dataset", func() bool { return len(holders(t, m)) == 0 })
}

// holders are the hosts that have copies on their disks.
func holders(t *testing.T, m *daemon.Team, among ...*daemon.Place) (hosts []string) {
	t.Helper()
	if among == nil {
		among = m.Nodes
	}
	for _, n := range among {
		if names, err := filepath.Glob(n.Dir + "/nvme/copies/*.mdb"); err != nil || len(names) > 0 {
			hosts = append(hosts, n.Host.Name)
		}
	}
	return hosts
}

// fetched is how much came from HDFS, to all nodes.
func fetched(m *daemon.Team) (sum int64) {
	for _, n := range m.Nodes {
		var s struct{ HDFS struct{ Bytes int64 } }
		n.Status(&s)
		sum += s.HDFS.Bytes
	}
	return sum
}

// slabs are the batches that are on the disk.
func slabs(p *daemon.Place) []string {
	names, _ := filepath.Glob(p.Dir + "/nvme/*.slab")
	return names
}

// database is the file of an LMDB with two databases of the same values.
func database(t *testing.T) (values [][]byte, file []byte) {
	t.Helper()
	for i := range 300 {
		values = append(values, bytes.Repeat(fmt.Appendf(nil, "value %d ", i), i*7))
	}
	dir := t.TempDir()
	env, err := clib.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	err = errors.Join(env.SetMapSize(1<<30), env.SetMaxDBs(2), env.Open(dir, clib.NoSync, 0600))
	for _, name := range []string{"a", "b"} {
		err = errors.Join(err, env.Update(func(txn *clib.Txn) error {
			dbi, err := txn.OpenDBI(name, clib.Create)
			for i, v := range values {
				if err == nil {
					err = txn.Put(dbi, binary.BigEndian.AppendUint32(nil, uint32(i)), v, 0)
				}
			}
			return err
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
	if file, err = os.ReadFile(filepath.Join(dir, "data.mdb")); err != nil {
		t.Fatal(err)
	}
	return values, file
}

// put writes a file to HDFS, in blocks of 1 MiB.
func put(t *testing.T, c *cluster.Cluster, name string, content []byte) {
	t.Helper()
	client, err := c.Host("data1").HDFS("root")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	w, err := client.CreateFile(name, 2, 1<<20, 0644)
	if err == nil {
		_, err = w.Write(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually.Done(t, limit, "close "+name, w.Close)
}
