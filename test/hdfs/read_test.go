package hdfs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

const block = 64 << 10

// lines is text of n lines, all of them different.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d %s\n", i, strings.Repeat("x", i*7919%400))
	}
	return b.String()
}

func sorted(text string) []string {
	all := strings.SplitAfter(text, "\n")
	slices.Sort(all)
	return all
}

// Every view of a dataset has each line once, in its order.
func TestViews(t *testing.T) {
	c := cluster.Mounts(t)
	path := c.Dir(t) + "/f"
	content := lines(5000)
	c.Host("data2").Put(t, path, []byte(content), 2, block)
	d := newPlace(t, c, "data1").start()
	d.create("train", path, "--batch", "256")
	d.create("loose", path, "--batch", "chunk")
	for _, set := range []string{"train@batch=256", "train@batch=chunk", "train@batch=64MiB", "loose"} {
		for _, order := range []string{"none", "window:1000", "full"} {
			view := set + map[bool]string{true: ",order=", false: "@order="}[strings.Contains(set, "@")] + order
			t.Run(view, func(t *testing.T) {
				got, err := d.read(view)
				if err != nil {
					t.Fatal(err)
				}
				if order == "none" && got != content {
					t.Error("other bytes than the file has")
				}
				if !slices.Equal(sorted(got), sorted(content)) {
					t.Error("other lines than the file has")
				}
			})
		}
	}
	if got, err := d.read("train@ranks=3"); err != nil || !slices.Equal(sorted(got), sorted(content)) {
		t.Errorf("three ranks read other lines, or %v", err)
	}
	if h := d.status().HDFS; h.Bytes < uint64(len(content)) || h.Failures != 0 || h.Corrupt != 0 {
		t.Errorf("status says %+v", h)
	}
}

// A dataset whose batches are chunks, in their order, is there when what follows each
// boundary was read; its lines are counted when that is asked for. Any other one is read.
func TestBoundariesAloneAreRead(t *testing.T) {
	c := cluster.Mounts(t)
	const size, blocks = 2 << 20, 4
	path := c.Dir(t) + "/f"
	content := lines(blocks * size / 150)[:blocks*size]
	c.Host("data2").Put(t, path, []byte(content), 2, size)
	d := newPlace(t, c, "data1").start()
	received := func(args ...string) uint64 {
		t.Helper()
		before := d.status().HDFS.Bytes
		d.Do(append([]string{"dataset"}, args...)...)
		return d.status().HDFS.Bytes - before
	}
	create := func(name string, options ...string) uint64 {
		return received(append([]string{"create", name, "--source", "hdfs://" + c.Nameservice() + path, "--batch", "chunk"}, options...)...)
	}
	// A datanode has sent some packets when the reader has what it wants.
	if n := create("boundaries"); n == 0 || n > blocks*(256<<10) {
		t.Errorf("%d bytes are read of %d, with %d boundaries", n, len(content), blocks-1)
	}
	if got, err := d.read("boundaries"); err != nil || got != content {
		t.Errorf("%d bytes of %d, or others: %v", len(got), len(content), err)
	}
	if n := received("refresh", "boundaries", "--records"); n < uint64(len(content)) {
		t.Errorf("%d bytes are read of %d to count lines", n, len(content))
	}
	if n := create("shuffled", "--order", "full"); n < uint64(len(content)) {
		t.Errorf("%d bytes are read of %d for lines in another order", n, len(content))
	}
}

// Where batches are is said as HDFS says it, and followed.
func TestLocality(t *testing.T) {
	c := cluster.MountsAlone(t)
	path := c.Dir(t) + "/f"
	content := lines(1000)
	c.Host("data2").Put(t, path, []byte(content), 1, block)
	d := newPlace(t, c, "data2", "--host", "data2.example.com").start() // HDFS has the short name
	d.create("train", path)
	if got, err := d.batch("train", 0); err != nil || !strings.HasPrefix(content, got) {
		t.Fatalf("a batch has other bytes, or %v", err)
	}
	attribute := func(name string) string {
		t.Helper()
		return strings.TrimSpace(d.Must("getfattr", "--absolute-names", "--only-values", "-n", "user.rankfs."+name, d.path("train", 0)))
	}
	size := strings.TrimSpace(d.Must("stat", "-c", "%s", d.path("train", 0)))
	if hosts, local := attribute("hosts"), attribute("local"); hosts != "data2" || local != size {
		t.Errorf("a batch of %s bytes is on %q, %s bytes of it here", size, hosts, local)
	}
	table := d.Must("cat", d.Dir+"/mnt/datasets/train/locality")
	if !strings.Contains(table, "data2") || strings.Contains(table, "data1") {
		t.Errorf("locality says\n%s", table)
	}
	chunks := d.Must("cat", d.Dir+"/mnt/datasets/train/chunks")
	if n := strings.Count(chunks, "  data2"); n != strings.Count(chunks, "\n")-1 || n < 2 || strings.Contains(chunks, ",") {
		t.Errorf("chunks says\n%s", chunks)
	}
	if h := d.status().HDFS; h.Local == 0 || h.Local != h.Bytes {
		t.Errorf("the replica is local, and status says %+v", h)
	}
	check(t, c.SetReplication(t.Context(), path, 2))
	check(t, c.WaitReplicas(t.Context(), path, 2))
	if err := c.Host("data2").Kill(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, 2*time.Minute, "those who live are named", func() bool {
		return attribute("hosts") == "data1,data3" && attribute("local") == "0"
	})
	for name, before := range map[string]string{"locality": table, "chunks": chunks} {
		now := d.Must("cat", d.Dir+"/mnt/datasets/train/"+name)
		if len(now) != len(before) || !strings.Contains(now, "data1,data3") || strings.Contains(now, "data2,") || strings.Contains(now, ",data2") {
			t.Errorf("%s says\n%sand said before\n%s", name, now, before)
		}
	}
}

// A datanode that HDFS knows by its full name is the host of a node with the short one:
// its blocks are local, in plans and in what is read.
func TestFullNamesInHDFS(t *testing.T) {
	c := cluster.MountsAlone(t)
	h := c.Host("data2")
	if err := h.Kill(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	fullName(t, h, "data2.example.com")
	path := c.Dir(t) + "/f"
	eventually.Within(t, 2*time.Minute, "HDFS has its full name, and knows of its room", func() bool {
		rooms, err := c.Rooms(t.Context())
		return err == nil && rooms["data2.example.com:9866"].Remaining > 0
	})
	content := lines(1000)
	h.Put(t, path, []byte(content), 1, block)
	d := newPlace(t, c, "data2").start()
	d.create("train", path, "--batch", "chunk")
	if got, err := d.read("train"); err != nil || got != content {
		t.Fatalf("other bytes than the file has, or %v", err)
	}
	table := strings.Fields(d.Must("tail", "-n", "1", d.Dir+"/mnt/datasets/train/locality")) // batch, rank, node, bytes, local, hosts
	if table[5] != "data2.example.com" || table[3] != table[4] {
		t.Errorf("locality says %v", table)
	}
	if h := d.status().HDFS; h.Local == 0 || h.Local != h.Bytes {
		t.Errorf("all replicas are local, and status says %+v", h)
	}
	var plan struct{ Plan struct{ Local float64 } }
	if err := json.Unmarshal([]byte(d.Do("--json", "plan", "train")), &plan); err != nil || plan.Plan.Local != 1 {
		t.Errorf("%.3f of the plan's bytes are local, %v", plan.Plan.Local, err)
	}
}

// fullName has a host's datanode run by that name until the test ends. It has a directory
// of its own, as namenodes go on telling the name that a known one came with first.
func fullName(t *testing.T, h *cluster.Host, name string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	datanode := h.Java(ctx, "org.apache.hadoop.hdfs.server.datanode.DataNode", "-Ddfs.datanode.hostname="+name, "-Ddfs.datanode.data.dir=file://"+t.TempDir())
	if err := datanode.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); datanode.Wait() })
}
