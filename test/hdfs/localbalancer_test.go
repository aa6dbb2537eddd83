package hdfs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// Hadoop's balancer takes blocks off a host whose disk is full, while ranks read them by
// file: no byte is wrong, no read fails, and files of blocks that are gone are given up.
func TestLocalBlocksThatAreBalanced(t *testing.T) {
	c := cluster.MountsAlone(t)
	h := c.Host("data1")
	file, content := c.Dir(t)+"/balanced", lines(5000)
	h.Put(t, file, []byte(content), twice, block)
	ctx, cancel := context.WithTimeout(t.Context(), 2*javaTime)
	defer cancel()
	check(t, c.WaitReplicas(ctx, file, twice))
	check(t, c.SafeMode(ctx, true)) // no replica is made elsewhere while the datanode is away
	check(t, h.Kill(cluster.DataNode))
	const size = 8 << 20
	withDatanode(t, h, fmt.Sprint("-Ddfs.datanode.du.reserved=", diskOf(t, h)-size))
	eventually.Within(t, javaTime, "the namenode knows the small disk", func() bool {
		rooms, err := c.Rooms(ctx)
		return err == nil && rooms["data1:9866"].Capacity == size
	})
	check(t, c.WaitReplicas(ctx, file, twice))
	check(t, c.SafeMode(ctx, false))

	d := newPlace(t, c, h.Name, "--hadoop-conf", c.ConfByFile()).start()
	d.create("balanced", file, "--ranks", fmt.Sprint(jobRanks))
	j := d.readers("balanced", file, content)
	check(t, c.ReportBlocks(ctx))
	blocks := j.blocks()
	var gone []uint64
	eventually.Within(t, javaTime, "the balancer takes blocks off the host", func() bool {
		// Its exit code says nothing: 3.4.2 fails before it begins another round.
		out, _ := c.Host("client").Java(ctx, "org.apache.hadoop.hdfs.server.balancer.Balancer",
			"-D", "dfs.balancer.getBlocks.min-block-size=1", "-threshold", "1").CombinedOutput()
		gone = slices.DeleteFunc(slices.Clone(blocks), h.HasReplica)
		t.Logf("%d of %d blocks are gone; the balancer says: %s", len(gone), len(blocks), out)
		return len(gone) > 0 || t.Failed()
	})
	j.goOn("balanced")
	eventually.Within(t, waitTime, "files of blocks that are gone are given up", func() bool {
		open := j.openBlocks()
		return !slices.ContainsFunc(gone, func(id uint64) bool { return open[fmt.Sprintf("blk_%d", id)] > 0 })
	})
	j.end()
}

// diskOf is the size of the disk that a host keeps its blocks on.
func diskOf(t *testing.T, h *cluster.Host) int64 {
	t.Helper()
	var s unix.Statfs_t
	check(t, unix.Statfs(h.Log(cluster.DataNode), &s))
	return int64(s.Blocks) * s.Frsize
}
