package datanode_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// afar writes a file of one block that has no replica on this host, so that the
// link of each datanode that has one may be cut.
func (b *bench) afar(c *cluster.Cluster, dir string, content []byte) namenode.Block {
	b.t.Helper()
	for i := range 30 {
		name := fmt.Sprint(dir, "/", i)
		c.Host("data2").Put(b.t, name, content, 2, 64<<20)
		block := b.block(name, 2)
		local := slices.ContainsFunc(block.Replicas, func(r namenode.Replica) bool { return r.Host == "data1" })
		if !local {
			return block
		}
	}
	b.t.Fatal("no block is on data2 and data3")
	return namenode.Block{}
}

// A datanode fails while a block is read from it.
func TestFailureInTheMiddle(t *testing.T) {
	for _, test := range []struct {
		name       string
		fail, mend func(*cluster.Host) error
	}{
		{"killed", func(h *cluster.Host) error { return h.Kill(cluster.DataNode) },
			func(h *cluster.Host) error { return h.Start(cluster.DataNode) }},
		{"stopped", func(h *cluster.Host) error { return h.Stop(cluster.DataNode) },
			func(h *cluster.Host) error { return h.Continue(cluster.DataNode) }},
		{"cut off", (*cluster.Host).LinkDown, (*cluster.Host).LinkUp},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := cluster.Exclusive(t)
			b := newBench(t, c)
			content := random(24 << 20) // more than the network holds on its way
			block := b.afar(c, c.Dir(t), content)

			got := make([]byte, len(content))
			s := b.Open(patient(t), block, 0, int64(len(got)))
			defer s.Close()
			if _, err := io.ReadFull(s, got[:100_000]); err != nil {
				t.Fatal(err)
			}
			failed := c.Host(b.hosts()[0])
			if err := test.fail(failed); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(s, got[100_000:]); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, content) {
				t.Error("other bytes than were written")
			}
			if s := b.Snapshot(); s.Failures != 1 || s.Corrupt != 0 {
				t.Errorf("the counters say %+v", s)
			}
			other := b.hosts() // perhaps the same one again, at once, which is gone
			if other = other[len(other)-1:]; other[0] == failed.Name {
				t.Fatalf("%s failed; then it was asked", failed.Name)
			}
			b.some(block, content)
			if again := b.hosts(); !slices.Equal(again, other) {
				t.Errorf("%s failed just now; then %v were asked", failed.Name, again)
			}
			if err := test.mend(failed); err != nil {
				t.Fatal(err)
			}
			b.untilForgiven(failed.Name, block, content)
		})
	}
}

// some reads a little of a block.
func (b *bench) some(block namenode.Block, content []byte) {
	b.t.Helper()
	got := make([]byte, 1000)
	s := b.Open(patient(b.t), block, 5000, int64(len(got)))
	defer s.Close()
	if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, content[5000:6000]) {
		b.t.Fatalf("a read of a little ends with %v", err)
	}
}

// untilForgiven reads until a datanode serves again which failed and is well.
func (b *bench) untilForgiven(name string, block namenode.Block, content []byte) {
	b.t.Helper()
	eventually.Within(b.t, 2*time.Minute, name+" is well and asked again", func() bool {
		before := b.Snapshot().Failures
		b.some(block, content)
		return slices.Contains(b.hosts(), name) && b.Snapshot().Failures == before
	})
}

// No datanode that has the block answers.
func TestNoReplica(t *testing.T) {
	c := cluster.Exclusive(t)
	b := newBench(t, c)
	block := b.afar(c, c.Dir(t), random(100_000))
	if err := errors.Join(c.Host("data2").Kill(cluster.DataNode), c.Host("data3").Stop(cluster.DataNode)); err != nil {
		t.Fatal(err)
	}
	b.with(func(c *datanode.Config) { c.Timeout = time.Second })
	s := b.Open(patient(t), block, 0, 100_000)
	defer s.Close()
	_, err := s.Read(make([]byte, 100_000))
	if !errors.Is(err, datanode.ErrNoReplica) {
		t.Fatal(err)
	}
	for _, word := range []string{"data2 (", "refused", "data3 (", "within 1s"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no word of %q in: %v", word, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than a line: %v", err)
	}
	if n := b.Snapshot().Streams; n != 0 {
		t.Errorf("%d streams are under way", n)
	}
}
