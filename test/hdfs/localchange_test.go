package hdfs_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// Ranks read blocks of their host by file while the blocks change: no byte is
// wrong, and no read fails, since other hosts have the blocks.
func TestLocalBlocksChange(t *testing.T) {
	c := cluster.Exclusive(t)
	dir := c.Dir(t)
	content := lines(5000)
	p := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile())
	changes := []struct {
		name     string
		reported bool // to the namenode
		change   func(j *job, block uint64) error
	}{
		{"bytes corrupted", true, func(j *job, block uint64) error { return j.Host.CorruptReplicaAt(block, 700) }},
		{"sums corrupted", true, func(j *job, block uint64) error { return overwriteSums(j.Host, block) }},
		{"replica deleted", false, func(j *job, block uint64) error { return j.Host.DeleteReplica(block) }},
	}
	for i, row := range changes {
		t.Run(row.name, func(t *testing.T) {
			d := (&place{p.For(t), t, c}).start()
			file, view := fmt.Sprintf("%s/%d", dir, i), fmt.Sprintf("change%d", i)
			d.Host.Put(t, file, []byte(content), 2, block)
			d.create(view, file, "--ranks", fmt.Sprint(jobRanks))
			j := d.readers(view, file, content)
			blocks := j.blocks()
			if len(blocks) < 2 {
				t.Fatalf("the host has %d blocks", len(blocks))
			}
			check(t, row.change(j, blocks[1]))
			j.goOn(row.name)
			if row.reported {
				eventually.Within(t, toolTime, "the namenode knows", func() bool { return t.Failed() || j.withdrawn(blocks[1]) })
			}
			j.end()
		})
	}
}

// overwriteSums makes the second checksum of a block another.
func overwriteSums(h *cluster.Host, block uint64) error {
	name, err := h.Sums(block)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte{1, 2, 3, 4}, 7+4)
	return err
}

// withdrawn reports whether the namenode no longer names this host for a block.
func (j *job) withdrawn(id uint64) bool {
	all, err := j.c.Blocks(j.t.Context(), j.file)
	i := slices.IndexFunc(all, func(b cluster.Block) bool { return b.ID == id })
	return err == nil && i >= 0 && !slices.Contains(all[i].Hosts, j.Host.Name)
}
