package hdfs_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
	"rankfs/test/hadoop"
	"rankfs/test/sourcetest"
)

// dataset registers what is at a path of the cluster.
func dataset(t *testing.T, c *cluster.Cluster, path string, change func(*hdfs.Config)) sourcetest.Dataset {
	t.Helper()
	env := &fetch.Env{HDFS: clusters(t, c, change)}
	return sourcetest.Attach(t, sourcetest.Fixture{Open: func() (fetch.Source, error) {
		return fetch.Open("hdfs://"+c.Nameservice()+path, env)
	}})
}

// readAll reads all records in order.
func readAll(d sourcetest.Dataset, ctx context.Context) ([]byte, error) {
	extents := d.Extents(0, d.Records())
	dst := make([]byte, d.Bytes())
	return dst, d.Read(ctx, extents, dst)
}

// mustRead fails the test if a dataset does not have that content.
func mustRead(t *testing.T, d sourcetest.Dataset, content []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if got, err := readAll(d, ctx); err != nil || !bytes.Equal(got, content) {
		t.Errorf("other bytes, or %v", err)
	}
}

// The namenode that answers dies, and later the other one.
func TestFailOver(t *testing.T) {
	c := cluster.Exclusive(t)
	path := c.Dir(t) + "/f"
	content := []byte(strings.Repeat("0123456789abcdef", 200_000))
	c.Host("data1").Put(t, path, content, 2, 1<<20)
	d := dataset(t, c, path+"?as=fixed:1000", func(k *hdfs.Config) { k.Timeout = 5 * time.Minute })

	// Readers go on all the while, and none may notice more than a delay. They rest, or
	// the namenode that begins would have to wait for processors.
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 4)
	for range 4 {
		go func() {
			for ctx.Err() == nil {
				got, err := readAll(d, t.Context())
				if err != nil || !bytes.Equal(got, content) {
					done <- errors.Join(errors.New("other bytes"), err)
					return
				}
				time.Sleep(time.Second)
			}
			done <- nil
		}()
	}
	limit, cancel := context.WithTimeout(t.Context(), 2*hadoop.StartTime)
	defer cancel()
	names := c.NameNodes()
	for i, failed := range names {
		if err := failed.Kill(cluster.NameNode); err != nil {
			t.Fatal(err)
		}
		if err := c.Activate(limit, names[1-i]); err != nil {
			t.Fatal(err)
		}
		mustRead(t, d, content)
		if err := failed.Start(cluster.NameNode); err != nil {
			t.Fatal(err)
		}
		if err := c.Ready(limit, failed); err != nil {
			t.Fatal(err)
		}
		if err := c.Activate(limit, failed); err != nil {
			t.Fatal(err)
		}
		mustRead(t, d, content)
	}
	stop()
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// No namenode answers, either because both are dead or because both are silent.
func TestNoNameNode(t *testing.T) {
	c := cluster.Exclusive(t)
	path := c.Dir(t) + "/f"
	content := []byte(strings.Repeat("0123456789abcdef", 200_000))
	c.Host("data1").Put(t, path, content, 2, 1<<20)
	quick := func(k *hdfs.Config) { k.Timeout = 10 * time.Second }
	d := dataset(t, c, path+"?as=fixed:1000", quick)
	env := &fetch.Env{HDFS: clusters(t, c, quick)}
	ctx, cancel := context.WithTimeout(t.Context(), 2*hadoop.StartTime)
	defer cancel()
	for _, way := range []struct{ down, up func(*cluster.Host) error }{
		{func(h *cluster.Host) error { return h.Stop(cluster.NameNode) }, func(h *cluster.Host) error { return h.Continue(cluster.NameNode) }},
		{func(h *cluster.Host) error { return h.Kill(cluster.NameNode) }, func(h *cluster.Host) error { return h.Start(cluster.NameNode) }},
	} {
		for _, h := range c.NameNodes() {
			if err := way.down(h); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := readAll(d, ctx); !errors.Is(err, namenode.ErrUnreachable) {
			t.Errorf("a read ends with %v", err)
		}
		if err := d.Check(ctx); err != nil {
			t.Errorf("it is not known whether the file changed, and Check says %v", err)
		}
		src, err := fetch.Open("hdfs://"+c.Nameservice()+path, env)
		if err == nil {
			_, err = src.Fingerprint(ctx)
		}
		if !errors.Is(err, namenode.ErrUnreachable) || !errors.Is(err, meta.ErrBusy) || !strings.Contains(err.Error(), "check that they run") {
			t.Errorf("a new dataset is refused with %v", err)
		}
		for _, h := range c.NameNodes() {
			if err := way.up(h); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Activate(ctx, c.NameNodes()[0]); err != nil {
			t.Fatal(err)
		}
		readAgain(t, d, content)
	}
}

// Reads of a block whose replicas are all gone fail, with an error that a person can act on,
// and those of other blocks do not.
func TestLostBlock(t *testing.T) {
	c := cluster.Exclusive(t)
	path := c.Dir(t) + "/f"
	content := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	c.Host("data2").Put(t, path, content, 1, block)
	d := dataset(t, c, path+"?as=fixed:16", nil)
	if err := c.Host("data2").Kill(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err := readAll(d, ctx)
	if !errors.Is(err, datanode.ErrNoReplica) || errors.Is(err, meta.ErrStale) {
		t.Fatalf("a read ends with %v", err)
	}
	for _, word := range []string{path, "block ", "data2 (", "hdfs fsck " + path} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no word of %q in: %v", word, err)
		}
	}
	if err := d.Check(ctx); err != nil {
		t.Errorf("Check says %v", err)
	}
	if err := c.Host("data2").Start(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	readAgain(t, d, content)
}

// readAgain reads all of a dataset once that goes well again.
func readAgain(t *testing.T, d sourcetest.Dataset, content []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	eventually.Done(t, time.Minute, "what has failed is back, and a read", func() error { _, err := readAll(d, ctx); return err })
	mustRead(t, d, content)
}
