package datanode_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"rankfs/test/cluster"
)

// A replica has lost its checksums, or their file says another thing of them
// than it did, and a byte is wrong: no check could find that, so the replica is not read.
func TestReplicaWithoutSums(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	content := random(300_000)
	head := func(off int64, with ...byte) func(sums string) error {
		return func(sums string) error { return overwrite(sums, off, with) }
	}
	cut := func(size int64) func(sums string) error {
		return func(sums string) error { return os.Truncate(sums, size) }
	}
	for _, test := range []struct {
		name    string
		damage  func(sums string) error
		corrupt bool // it is the replica's fault, and not an error that its datanode noticed
	}{
		{"removed", os.Remove, true},
		{"emptied", cut(0), false},
		{"cut within the head", cut(3), false},
		{"cut behind the head", cut(7), true},
		{"cut in the middle", cut(1000), true},
		{"said to be none", head(2, 0), true},
		{"said to be of an unknown kind", head(2, 9), false},
		{"said to be of another kind", head(2, 1), true},
		{"said to be for each byte", head(3, 0, 0, 0, 1), true},
		{"said to be for no bytes", head(3, 0, 0, 0, 0), false},
		{"said to be for 2 GiB", head(3, 0x7f, 0xff, 0xff, 0xff), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := dir + "/" + test.name
			c.Host("data1").Put(t, name, content, 2, 1<<20)
			b := newBench(t, c)
			block := b.block(name, 2)
			sums, err := c.Host("data1").Sums(block.ID)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(test.damage(sums), c.Host("data1").CorruptReplicaAt(block.ID, 70_000)); err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(4, 4))
			if got, err := b.read(block, 0, len(content), r); err != nil || !bytes.Equal(got, content) {
				t.Errorf("other bytes, or %v", err)
			}
			s := b.Snapshot()
			if s.Failures != 1 || (s.Corrupt == 1) != test.corrupt {
				t.Errorf("the counters say %+v", s)
			}
			if to := b.hosts(); len(to) < 2 || to[0] != "data1" {
				t.Errorf("asked %v", to)
			}
		})
	}
}

func overwrite(file string, off int64, with []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(with, off)
	return errors.Join(err, f.Close())
}
