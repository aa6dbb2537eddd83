package hdfs_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// A read of a datanode that goes on while the test does something: the host's
// link is slow.
type slowRead struct {
	*place
	cat   *exec.Cmd
	ended chan error
}

// begin opens a batch that takes seconds to come, and waits until it does come.
func (d *place) begin(view string) *slowRead {
	d.t.Helper()
	before := d.status().HDFS.Bytes
	r := &slowRead{place: d, cat: d.Host.Command(context.Background(), "cat", d.path(view, 0)), ended: make(chan error, 1)}
	if err := r.cat.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() { r.ended <- r.cat.Wait() }()
	eventually.Within(d.t, toolTime, "bytes come", func() bool { return d.status().HDFS.Bytes > before+(100<<10) })
	if d.connections() == 0 {
		d.t.Fatal("no connection to a datanode is open in the middle of a read")
	}
	return r
}

// end waits for the reader, who got his batch or did not.
func (r *slowRead) end(read bool) {
	r.t.Helper()
	if err := <-r.ended; (err == nil) != read {
		r.t.Errorf("the reader ends with %v", err)
	}
}

// connections counts those that the host has to datanodes, as these see it.
func (p *place) connections() (n int) {
	p.t.Helper()
	for _, h := range p.c.DataNodes() {
		out, err := h.Command(context.Background(), "ss", "-Htn", "state", "connected", "exclude", "time-wait",
			"src", h.IP+":9866", "dst", p.Host.IP).CombinedOutput()
		if err != nil {
			p.t.Fatalf("%v: %s", err, out)
		}
		n += strings.Count(string(out), "\n")
	}
	return n
}

// The reader is killed, the mount taken away, the daemon killed, each in the
// middle of a read: no datanode is left with a connection, and no namenode with
// a lease.
func TestAborted(t *testing.T) {
	c := cluster.MountsAlone(t)
	dir := c.Dir(t)
	content := strings.Repeat(lines(2000), 40) // 16 MB
	const large = 4 << 20
	c.Host("data2").Put(t, dir+"/f", []byte(content), 2, large)
	p := newPlace(t, c, "client")
	d := p.start()
	d.create("train", dir+"/f", "--batch", "chunk")
	if err := p.Host.LinkRate(1 << 20); err != nil {
		t.Fatal(err)
	}
	quiet := func() {
		t.Helper()
		eventually.Within(t, toolTime, "no connection to a datanode is open", func() bool { return p.connections() == 0 })
	}
	// What was begun for one who is gone is of use to others. It has an end.
	r := d.begin("train")
	r.cat.Process.Kill()
	r.end(false)
	quiet()
	if n := d.status().HDFS.Streams; n != 0 {
		t.Errorf("%d streams are under way without a reader", n)
	}

	// An open that waits gets its batch; fills that were begun ahead are given up.
	r = d.begin("train@order=full,seed=1")
	d.Do("umount", "--lazy", d.Dir+"/mnt")
	r.end(true)
	d.AwaitEnd()
	quiet()

	d = p.start()
	r = d.begin("train")
	d.Kill()
	r.end(false)
	quiet()

	if err := p.Host.LinkRate(0); err != nil {
		t.Fatal(err)
	}
	d = p.start()
	if got, err := d.read("train"); err != nil || got != content {
		t.Errorf("other bytes, or %v", err)
	}
	quiet()
	noLease(t, c, dir)
}

// noLease fails the test if a client other than its own writer holds a lease on a file
// of a directory.
func noLease(t *testing.T, c *cluster.Cluster, dir string) {
	t.Helper()
	client, err := c.Host("data2").HDFS("root")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	w, err := client.CreateFile(dir+"/open", 1, 1<<20, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	said, err := c.Check(t.Context(), dir, "files", "openforwrite")
	if n := strings.Count(said, "OPENFORWRITE"); n != 1 || err != nil {
		t.Errorf("%d files are open for writing, want the one that this test writes; %v\n%s", n, err, said)
	}
}
