package datanode_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/test/cluster"
)

// checked is how many bytes have a checksum together.
const checked = 512

// read reads a range in pieces of random sizes.
func (b *bench) read(block namenode.Block, off, n int, r *rand.Rand) ([]byte, error) {
	s := b.Open(patient(b.t), block, int64(off), int64(n))
	defer s.Close()
	got := make([]byte, n)
	for at := 0; at < n; {
		most := 1 + r.IntN(n-at)
		if r.IntN(2) == 0 {
			most = min(most, 1+r.IntN(2*checked))
		}
		k, err := s.Read(got[at : at+most])
		if err != nil {
			return got[:at], err
		}
		at += k
	}
	if _, err := s.Read(make([]byte, 1)); err != io.EOF {
		return nil, fmt.Errorf("behind the range: %w", err)
	}
	return got, nil
}

// One byte of the only replica is wrong: no read gives it out, and none that
// needs nothing with the same checksum fails.
func TestNeverAWrongByte(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	b := newBench(t, c)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, size := range []int{1, 300, 512, 513, 65536, 65537, 3*65536 + 700} {
		name := fmt.Sprintf("%s/%d", dir, size)
		content := random(size)
		c.Host("data2").Put(t, name, content, 1, 1<<20)
		block := b.block(name, 1)
		for _, wrong := range []int{0, size - 1, min(size-1, checked-1), size / 2, r.IntN(size), r.IntN(size)} {
			if err := c.Host("data2").CorruptReplicaAt(block.ID, int64(wrong)); err != nil {
				t.Fatal(err)
			}
			b.readAround(block, content, wrong, r)
			if err := c.Host("data2").CorruptReplicaAt(block.ID, int64(wrong)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := b.Snapshot(); s.Corrupt == 0 || s.Corrupt != s.Failures || s.Streams != 0 {
		t.Errorf("the counters say %+v", s)
	}
}

// readAround reads ranges that begin and end anywhere.
func (b *bench) readAround(block namenode.Block, content []byte, wrong int, r *rand.Rand) {
	b.t.Helper()
	size := len(content)
	ranges := [][2]int{{0, size}, {wrong, wrong + 1}, {0, wrong + 1}, {wrong, size}}
	for range 20 {
		off := r.IntN(size)
		ranges = append(ranges, [2]int{off, off + 1 + r.IntN(size-off)})
		near := max(0, wrong-r.IntN(3*checked))
		ranges = append(ranges, [2]int{near, min(size, near+1+r.IntN(4*checked))})
	}
	for _, x := range ranges {
		got, err := b.read(block, x[0], x[1]-x[0], r)
		if !bytes.Equal(got, content[x[0]:x[0]+len(got)]) {
			b.t.Errorf("byte %d of %d is wrong: a read of [%d, %d) has given it out", wrong, size, x[0], x[1])
		}
		touched := wrong >= x[0]/checked*checked && wrong < (x[1]+checked-1)/checked*checked
		if touched != (err != nil) {
			b.t.Errorf("byte %d of %d is wrong: a read of [%d, %d) ends with %v", wrong, size, x[0], x[1], err)
		}
	}
}

// A replica ends early on disk, which its datanode does not know: it accepts
// each read and then hangs up.
func TestReplicaCutShort(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	r := rand.New(rand.NewPCG(1, 1))
	content := random(300_000)
	for _, size := range []int64{0, 1, 65536, 150_000, 299_999} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := newBench(t, c)
			name := fmt.Sprintf("%s/%d", dir, size)
			c.Host("data1").Put(t, name, content, 1, 1<<20)
			block := b.block(name, 1)
			if err := c.Host("data1").TruncateReplica(block.ID, size); err != nil {
				t.Fatal(err)
			}
			for _, off := range []int{0, 1, 140_000, 299_000} {
				got, err := b.read(block, off, len(content)-off, r)
				if err == nil || !bytes.Equal(got, content[off:off+len(got)]) {
					t.Errorf("%d bytes from %d on, and %v", len(got), off, err)
				}
			}
			if n := len(b.hosts()); n > 8 { // one that brings some, and one that brings nothing
				t.Errorf("%d connections for 4 reads", n)
			}
		})
	}
}

// The replica that is asked first is spoiled: another is used.
func TestCorruptReplicaIsPassedOver(t *testing.T) {
	c := cluster.Shared(t)
	name := c.Dir(t) + "/f"
	content := random(300_000)
	c.Host("data1").Put(t, name, content, 2, 1<<20)
	b := newBench(t, c)
	block := b.block(name, 2)
	if err := c.Host("data1").CorruptReplicaAt(block.ID, 299_999); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(2, 2))
	got, err := b.read(block, 0, len(content), r)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("other bytes, or %v", err)
	}
	if s := b.Snapshot(); s.Corrupt != 1 || s.Failures != 1 || s.Streams != 0 {
		t.Errorf("the counters say %+v", s)
	}
}
