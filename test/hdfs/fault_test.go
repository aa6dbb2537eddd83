package hdfs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// A file that becomes another is stale to opens, and the error says what to do.
func TestOverwritten(t *testing.T) {
	c := cluster.Mounts(t)
	path := c.Dir(t) + "/f"
	content := lines(2000)
	c.Host("data2").Put(t, path, []byte(content), 2, block)
	d := newPlace(t, c, "data1").start()
	d.create("train", path)
	if got, err := d.read("train"); err != nil || got != content {
		t.Fatalf("other bytes, or %v", err)
	}
	client, err := c.Host("data2").HDFS("root")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Remove(path); err != nil {
		t.Fatal(err)
	}
	c.Host("data2").Put(t, path, []byte(lines(2001)), 2, block)
	eventually.Within(t, toolTime, "a batch is stale", func() bool {
		got, err := d.batch("train", 0)
		if err == nil && !strings.HasPrefix(content, got) {
			t.Fatal("a batch of another version")
		}
		return err != nil && strings.Contains(err.Error(), "Stale file handle")
	})
	d.Do("dataset", "refresh", "train")
	if got, err := d.read("train"); err != nil || got != lines(2001) {
		t.Errorf("other bytes after a refresh, or %v", err)
	}
}

// What is renamed or cut short below a mount is stale in all views, and in what is said of
// its dataset, and until then no view has another byte than was indexed. When it is back, or
// as it is now, a refresh serves it.
func TestRenamedAndTruncated(t *testing.T) {
	c := cluster.Mounts(t)
	dir, text := c.Dir(t), lines(2000)
	client, err := c.Host("data2").HDFS("root")
	check(t, err)
	defer client.Close()
	away := func(path string) error {
		return client.Rename(dir+"/"+path, dir+"/away-"+strings.ReplaceAll(path, "/", "-"))
	}
	back := func(path string) error { return client.Rename(dir+"/away-"+path, dir+"/"+path) }
	stay := func(string) error { return nil }
	rows := map[string]struct {
		as     string
		files  map[string]string // by path
		change func(path string) error
		what   string // is changed
		mend   func(path string) error
		next   string // what a refresh serves
	}{
		"file":       {"lines", map[string]string{"file": text}, away, "file", back, text},
		"cut":        {"lines", map[string]string{"cut": text}, func(path string) error { _, err := client.Truncate(dir+"/"+path, 2*block); return err }, "cut", stay, text[:2*block]},
		"tree":       {"files", map[string]string{"tree/0": text, "tree/sub/1": "one"}, away, "tree", back, text + "one"},
		"file-below": {"files", map[string]string{"file-below/0": text, "file-below/sub/1": "one"}, away, "file-below/sub/1", stay, text},
	}
	d := newPlace(t, c, "data1").start()
	for name, row := range rows {
		for path, content := range row.files {
			c.Host("data2").Put(t, dir+"/"+path, []byte(content), 2, block)
		}
		d.create(name, dir+"/"+name, "--as", row.as, "--batch", "1000")
		if got, err := d.batch(name, 0); err != nil || !strings.HasPrefix(text+"one", got) {
			t.Fatalf("%s: other bytes, or %v", name, err)
		}
	}
	for name, row := range rows {
		check(t, row.change(row.what))
		for _, view := range []string{name + "@batch=100", name, name + "@batch=64MiB"} { // the first and the last are new
			eventually.Within(t, toolTime, view+" is stale", func() bool {
				got, err := d.batch(view, 0)
				if err == nil && !strings.HasPrefix(text+"one", got) {
					t.Fatalf("%s has bytes that never were", view)
				}
				return err != nil && strings.Contains(err.Error(), "Stale file handle")
			})
		}
	}
	listed, warned := d.Do("dataset", "ls"), fmt.Sprintln(d.status().Warnings)
	if n := strings.Count(listed, "stale"); n != len(rows) {
		t.Errorf("%d of %d are listed as stale:\n%s", n, len(rows), listed)
	}
	for name, row := range rows {
		if shown := d.Do("dataset", "show", name); !strings.Contains(shown, "stale") || !strings.Contains(warned, "dataset "+name+" cannot be read") {
			t.Errorf("%s is shown as\n%s\nand of all it is warned\n%s", name, shown, warned)
		}
		check(t, row.mend(row.what))
		d.Do("dataset", "refresh", name)
		if got, err := d.read(name); err != nil || got != row.next {
			t.Errorf("%s: after a refresh %d bytes, want %d, or others: %v", name, len(got), len(row.next), err)
		}
	}
}

// A block that no datanode has is an error of input and output, named in the log;
// with its datanode it is back.
func TestLostBlock(t *testing.T) {
	c := cluster.MountsAlone(t)
	path := c.Dir(t) + "/f"
	content := lines(2000)
	c.Host("data2").Put(t, path, []byte(content), 1, block)
	d := newPlace(t, c, "client").start()
	d.create("train", path)
	if err := c.Host("data2").Kill(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	if _, err := d.batch("train", 3); err == nil || !strings.Contains(err.Error(), "Input/output error") {
		t.Errorf("a batch ends with %v", err)
	}
	if log := d.Log(); !strings.Contains(log, "no replica can be read") || !strings.Contains(log, "hdfs fsck "+path) {
		t.Errorf("the log does not say why:\n%s", log)
	}
	if err := c.Host("data2").Start(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, javaTime, "the block is read again", func() bool {
		got, err := d.read("train")
		return err == nil && got == content
	})
}

// While no namenode answers what is in memory stays, and what is not is refused
// in a way that says to try again, also by a daemon that begins meanwhile.
func TestNoNameNode(t *testing.T) {
	c := cluster.MountsAlone(t)
	dir := c.Dir(t)
	content := lines(2000)
	p := newPlace(t, c, "client")
	d := p.start()
	for _, name := range []string{"seen", "new"} {
		c.Host("data2").Put(t, dir+"/"+name, []byte(content), 2, block)
		d.create(name, dir+"/"+name)
	}
	if got, err := d.read("seen"); err != nil || got != content {
		t.Fatalf("other bytes, or %v", err)
	}
	health := func() string { return d.Must("cat", d.Dir+"/mnt/.rankfs/health") }
	if got := health(); got != "ok\n" {
		t.Errorf("the health is %s", got)
	}
	if _, err := d.Rankfs("dataset", "create", "nowhere", "--source", "hdfs://127.0.0.1:1/x", "--as", "lines"); err == nil {
		t.Error("there is a namenode nowhere")
	}
	names := c.NameNodes()
	if err := errors.Join(names[0].Stop(cluster.NameNode), names[1].Stop(cluster.NameNode)); err != nil {
		t.Fatal(err)
	}
	if got, err := d.batch("seen", 0); err != nil || !strings.HasPrefix(content, got) {
		t.Errorf("a batch in memory has other bytes, or ends with %v", err)
	}
	refused := func() {
		t.Helper()
		if _, err := d.batch("new", 0); err == nil || !strings.Contains(err.Error(), "busy") {
			t.Errorf("a batch that is not there ends with %v", err)
		}
	}
	for range 10 {
		refused()
	}
	eventually.Within(t, javaTime, "the health is of one namenode", func() bool {
		got := health()
		return strings.Contains(got, " hdfs no namenode of hdfs://") && strings.Count(got, "\n") == 1
	})
	d.Kill()
	d = p.start() // which has asked no namenode yet
	refused()
	if log := d.Log(); !strings.Contains(log, "no namenode answers") {
		t.Errorf("the log does not say why:\n%s", log)
	}
	if err := errors.Join(names[0].Continue(cluster.NameNode), names[1].Continue(cluster.NameNode)); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, javaTime, "the new dataset is read", func() bool {
		got, err := d.read("new")
		return err == nil && got == content
	})
	eventually.Within(t, javaTime, "all is well", func() bool { return health() == "ok\n" })
}

// A replica is damaged: readers get the right bytes, and only a counter shows it.
func TestCorruptReplica(t *testing.T) {
	c := cluster.MountsAlone(t)
	path := c.Dir(t) + "/f"
	content := lines(500)
	c.Host("data1").Put(t, path, []byte(content), 3, 1<<20)
	d := newPlace(t, c, "data1").start()
	d.create("train", path, "--batch", "chunk") // reads almost nothing
	if err := c.Host("data1").CorruptReplicaAt(onlyBlock(t, c, path), 1000); err != nil {
		t.Fatal(err)
	}
	if got, err := d.read("train"); err != nil || got != content {
		t.Errorf("other bytes, or %v", err)
	}
	if h := d.status().HDFS; h.Corrupt != 1 || h.Failures != 1 {
		t.Errorf("status says %+v", h)
	}
}

// onlyBlock is the id of the one block of a file, as soon as it is on all three
// datanodes.
func onlyBlock(t *testing.T, c *cluster.Cluster, path string) (id uint64) {
	t.Helper()
	names, err := namenode.New(namenode.Config{Addresses: c.Addresses(), User: "root", Dial: c.Host("client").DialContext})
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	eventually.Within(t, javaTime, "a block on three datanodes", func() bool {
		located, err := names.Locate(t.Context(), path, 0, 1<<30)
		if err != nil || len(located.Blocks) != 1 {
			t.Fatalf("%+v, %v", located, err)
		}
		id = located.Blocks[0].ID
		return len(located.Blocks[0].Replicas) == 3
	})
	return id
}

// A daemon that was killed has its batches on NVMe, and the next one serves them.
func TestKilled(t *testing.T) {
	c := cluster.Mounts(t)
	path := c.Dir(t) + "/f"
	content := random(240_000, 205) // memory packs what it can, and keeps it then
	c.Host("data2").Put(t, path, []byte(content), 2, 1<<20)
	p := newPlace(t, c, "data1")
	p.Options("--ram", "16MiB", "--nvme", p.Dir+"/nvme:256MiB")
	d := p.start()
	d.create("train", path, "--batch", "chunk")
	d.keepOnDisk("train")
	if got, err := d.read("train"); err != nil || got != content {
		t.Fatalf("other bytes, or %v", err)
	}
	eventually.Within(t, toolTime, "batches are on nvme", func() bool { return d.onNVMe() > 3 })
	d.Kill()
	next := p.start()
	if n := next.onNVMe(); n < 3 {
		t.Errorf("the next daemon finds %d slabs", n)
	}
	if got, err := next.read("train"); err != nil || got != content {
		t.Errorf("other bytes, or %v", err)
	}
	if h := next.status().HDFS; h.Bytes >= uint64(len(content)) {
		t.Errorf("all of %d bytes were fetched again: %+v", len(content), h)
	}
}

func (d *place) onNVMe() int {
	for _, tier := range d.status().Tiers {
		if tier.Name == "nvme" {
			return tier.Slabs
		}
	}
	return 0
}

// random is so many lines of letters that nothing can pack well, each of n bytes.
func random(lines, n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 0, lines*n)
	for range lines {
		for range n - 1 {
			b = append(b, byte('!'+r.IntN(90)))
		}
		b = append(b, '\n')
	}
	return string(b)
}

// The disk of --nvme fills up under batches and chunks from HDFS, long before
// its budget does: memory serves on, and it is said.
func TestFullDisk(t *testing.T) {
	c := cluster.Mounts(t)
	path := c.Dir(t) + "/f"
	content := random(200_000, 205) // 41 MB that cannot be packed
	c.Host("data2").Put(t, path, []byte(content), 2, 1<<20)
	p := newPlace(t, c, "data1")
	p.Must("mount", "-t", "tmpfs", "-o", "size=20m", "small", p.Dir+"/nvme")
	t.Cleanup(func() { p.Must("umount", p.Dir+"/nvme") })
	p.Options("--ram", "16MiB", "--nvme", p.Dir+"/nvme/slabs:256MiB")
	d := p.start()
	d.create("train", path, "--batch", "2000")
	d.keepOnDisk("train")
	for _, view := range []string{"train", "train@batch=chunk", "train@order=window:5000", "train@batch=chunk", "train"} {
		got, err := d.read(view)
		if err != nil || view != "train@order=window:5000" && got != content || !slices.Equal(sorted(got), sorted(content)) {
			t.Errorf("%s: other bytes, or %v", view, err)
		}
	}
	// The directory is tried again half a minute after it refused, by the next that is put
	// there: reading ended before, or another pass says it.
	s := d.status()
	eventually.Within(t, javaTime, "status says that the disk is full", func() bool {
		for _, tier := range s.Tiers {
			if tier.Name != "nvme" && tier.State != "ok" {
				t.Fatalf("%s is %q", tier.Name, tier.State)
			}
			if tier.Name == "nvme" && strings.Contains(tier.State, "no space left on device") {
				return true
			}
		}
		if got, err := d.read("train"); err != nil || got != content {
			t.Fatalf("other bytes, or %v", err)
		}
		s = d.status()
		return false
	})
	if d.onNVMe() == 0 {
		t.Error("nothing is on the disk")
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "nvme") {
		t.Errorf("warnings: %q", s.Warnings)
	}
	if log := d.Log(); !strings.Contains(log, "nvme tier makes way") || !strings.Contains(log, "no space left on device") {
		t.Errorf("the log does not say why:\n%s", log)
	}
	if s.HDFS.Failures != 0 || s.Counters.OpenErrors != 0 {
		t.Errorf("status says %+v", s)
	}
}
