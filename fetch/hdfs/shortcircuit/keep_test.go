package shortcircuit_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"

	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/test/eventually"
)

// Files that are kept open are used again while they are as they were.
func TestKept(t *testing.T) {
	x := newReplica(t, 1000, 512, 2)
	d := newDatanode(t, pass(x.data, x.sums))
	c := d.client(t)
	got := make([]byte, 1000)
	for range 10 {
		if err := read(c, block(1, 1000), got, 0); err != nil || !bytes.Equal(got, x.content) {
			t.Fatal(err)
		}
	}
	if n := d.asked.Load(); n != 1 {
		t.Fatalf("asked %d times", n)
	}
	f, err := c.Open(t.Context(), block(1, 1000))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	if err := os.Rename(x.data, x.data+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := f.ReadAt(got, 0); !errors.Is(err, shortcircuit.ErrChanged) {
		t.Errorf("a block that was moved: %v", err)
	}
	if err := os.Rename(x.data+".moved", x.data); err != nil {
		t.Fatal(err)
	}
	if err := read(c, block(1, 1000), got, 0); err != nil {
		t.Fatal(err)
	}
	if n := d.asked.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// More blocks than are kept: no more descriptors.
func TestKeepIsBounded(t *testing.T) {
	var own []replica // or one that is passed for the next block would change
	var passed atomic.Int64
	for range 20 {
		own = append(own, newReplica(t, 1000, 512, 2))
	}
	c := newDatanode(t, func(conn *net.UnixConn) {
		x := own[passed.Add(1)-1]
		pass(x.data, x.sums)(conn)
	}).client(t)
	for id := range own {
		if err := read(c, block(uint64(id), 1000), make([]byte, 1000), 0); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "no more than four are open", func() bool { return c.Snapshot().Files <= 4 })
	}
}

// What is idle goes when the block is deleted, and when the datanode begins anew.
func TestIdleFilesGo(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*testing.T, *datanode, replica)
	}{
		{"deleted", func(t *testing.T, _ *datanode, x replica) {
			if err := errors.Join(os.Remove(x.data), os.Remove(x.sums)); err != nil {
				t.Fatal(err)
			}
		}},
		{"begun anew", func(t *testing.T, d *datanode, x replica) {
			d.listen.Close()
			d.start(pass(x.data, x.sums))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newReplica(t, 1000, 512, 2)
			d := newDatanode(t, pass(x.data, x.sums))
			c := d.client(t)
			if err := read(c, block(1, 1000), make([]byte, 1000), 0); err != nil {
				t.Fatal(err)
			}
			row.change(t, d, x)
			eventually.True(t, "the files are closed", func() bool { return c.Snapshot().Files == 0 })
		})
	}
}

// So it does while another block is read all the while.
func TestIdleFilesGoBesideReaders(t *testing.T) {
	gone, busy := newReplica(t, 1000, 512, 2), newReplica(t, 1000, 512, 2)
	var first atomic.Bool
	d := newDatanode(t, func(c *net.UnixConn) {
		if first.CompareAndSwap(false, true) {
			pass(gone.data, gone.sums)(c)
			return
		}
		pass(busy.data, busy.sums)(c)
	})
	c, p := d.client(t), make([]byte, 1000)
	if err := read(c, block(1, 1000), p, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(gone.data), os.Remove(gone.sums)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the files of a deleted block are closed", func() bool {
		if err := read(c, block(2, 1000), p, 0); err != nil {
			t.Fatal(err)
		}
		return c.Snapshot().Files == 1
	})
}
