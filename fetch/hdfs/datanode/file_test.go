package datanode_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// near is a bench whose client takes blocks of data1, the host of these tests, by
// their files.
type near struct {
	*bench
	files    *shortcircuit.Client
	reported atomic.Int64 // replicas that were told to be corrupt
}

func newNear(t *testing.T, c *cluster.Cluster) *near {
	t.Helper()
	conf, err := namenode.FromConf(c.ConfByFile(), c.Nameservice())
	if err != nil {
		t.Fatal(err)
	}
	if !conf.Data.ByFile {
		t.Fatal("the configuration does not say to read by file")
	}
	n := &near{bench: newBench(t, c), files: shortcircuit.New(shortcircuit.Config{Path: conf.Data.Socket, BackOff: 100 * time.Millisecond, Age: time.Hour})}
	t.Cleanup(func() {
		n.files.Close()
		eventually.True(t, "no block's files are open at the end", func() bool { return n.files.Snapshot().Files == 0 })
	})
	n.with(func(d *datanode.Config) {
		d.Host, d.Files = "data1", n.files
		d.Corrupt = func(ctx context.Context, b namenode.Block, r namenode.Replica) {
			n.reported.Add(1)
			if err := n.names.ReportCorrupt(ctx, b, r.ID); err != nil {
				t.Errorf("report block %d: %v", b.ID, err)
			}
		}
	})
	return n
}

// byFile is how many bytes f got by file, and how many connections it made.
func (n *near) byFile(f func()) (bytes uint64, dials int) {
	before := n.Snapshot().Files
	n.hosts()
	f()
	return n.Snapshot().Files - before, len(n.hosts())
}

func (n *near) same(block namenode.Block, content []byte, off, size int, r *rand.Rand) {
	n.t.Helper()
	got, err := n.read(block, off, size, r)
	if err != nil {
		n.t.Fatalf("%d+%d of %d bytes: %v", off, size, len(content), err)
	}
	if !bytes.Equal(got, content[off:off+size]) {
		n.t.Fatalf("%d+%d of %d bytes are wrong", off, size, len(content))
	}
}

func TestBlocksByFile(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	n := newNear(t, c)
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 511, 512, 513, 65536, 3<<20 + 700} {
		name, content := fmt.Sprintf("%s/%d", dir, size), random(size)
		c.Host("data1").Put(t, name, content, 1, 4<<20)
		block := n.block(name, 1)
		got, dials := n.byFile(func() {
			n.same(block, content, 0, size, r)
			for range 20 {
				off := r.IntN(size)
				n.same(block, content, off, 1+r.IntN(size-off), r)
			}
		})
		if got < uint64(size) || dials != 0 {
			t.Errorf("of a block of %d bytes %d came by file, with %d connections", size, got, dials)
		}
	}
	if s := n.Snapshot(); s.Files != s.Bytes || s.Files != s.Local || s.Failures != 0 {
		t.Errorf("the counters say %+v", s)
	}
}

// A byte of the block, or of its checksums, is wrong on the local disk: the other
// replica's bytes are given out, the namenode hears of it, and other blocks on that
// disk are read by file as before.
func TestCorruptByFile(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	r := rand.New(rand.NewPCG(3, 4))
	flips := map[string]func(block uint64) error{
		"bytes": func(block uint64) error { return c.Host("data1").CorruptReplicaAt(block, 70000) },
		"sums": func(block uint64) error {
			name, err := c.Host("data1").Sums(block)
			if err != nil {
				return err
			}
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte{1, 2, 3, 4}, 7+4*(70000/checked))
			return err
		},
	}
	for what, flip := range flips {
		t.Run(what, func(t *testing.T) {
			n := newNear(t, c)
			name, content := dir+"/"+what, random(200000+len(what))
			c.Host("data1").Put(t, name, content, 2, 1<<20)
			block := n.block(name, 2)
			if got, _ := n.byFile(func() { n.same(block, content, 0, len(content), r) }); got == 0 {
				t.Fatal("the sound replica was not read by file")
			}
			if err := flip(block.ID); err != nil {
				t.Fatal(err)
			}
			n.same(block, content, 0, len(content), r)
			if n.reported.Load() == 0 {
				t.Error("the replica was not reported")
			}
			c.Host("data1").Put(t, name+"-sound", content, 2, 1<<20)
			sound := n.block(name+"-sound", 2)
			if got, _ := n.byFile(func() { n.same(sound, content, 0, len(content), r) }); got == 0 {
				t.Error("the datanode's other blocks are no longer read by file")
			}
			eventually.True(t, "the namenode does not hold the replica for sound", func() bool {
				located, err := n.names.Locate(t.Context(), name, 0, 1)
				if err != nil {
					t.Fatal(err)
				}
				on := located.Blocks[0].Replicas // where it was asked from a replica on this host would come first
				return len(on) > 0 && !strings.HasPrefix(on[0].Host, "data1")
			})
		})
	}
}

// What happens to a block whose files are kept open.
func TestFilesAreGivenUp(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	n := newNear(t, c)
	r := rand.New(rand.NewPCG(5, 6))
	host := c.Host("data1")
	client, err := host.HDFS("root")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	gone := func(t *testing.T, why string) {
		t.Helper()
		eventually.True(t, "its files are closed: "+why, func() bool { return n.files.Snapshot().Files == 0 })
	}
	put := func(t *testing.T, name string, size int) (namenode.Block, []byte) {
		t.Helper()
		content := random(size)
		host.Put(t, dir+"/"+name, content, 1, 1<<20)
		block := n.block(dir+"/"+name, 1)
		if got, _ := n.byFile(func() { n.same(block, content, 0, size, r) }); got != uint64(size) {
			t.Fatalf("%d of %d bytes came by file", got, size)
		}
		return block, content
	}
	t.Run("deleted", func(t *testing.T) {
		put(t, "deleted", 100000)
		if err := client.Remove(dir + "/deleted"); err != nil {
			t.Fatal(err)
		}
		gone(t, "the file was deleted")
	})
	t.Run("appended", func(t *testing.T) {
		block, content := put(t, "appended", 100001)
		w, err := client.Append(dir + "/appended")
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Write(random(5000))
		if err := errors.Join(err, cluster.Finish(w)); err != nil {
			t.Fatal(err)
		}
		gone(t, "the file was appended to")
		// The old block has another stamp now: no files, and TCP has the last word.
		if got, err := n.read(block, 0, len(content), r); err == nil && !bytes.Equal(got, content) {
			t.Error("other bytes were read")
		}
		located, err := n.names.Locate(t.Context(), dir+"/appended", 0, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		n.same(located.Blocks[0], append(content, random(5000)...), 0, len(content)+5000, r)
		n.files.Close()
		gone(t, "the client was closed")
	})
}
