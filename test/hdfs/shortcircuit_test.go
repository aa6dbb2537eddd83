package hdfs_test

import (
	"fmt"
	"strings"
	"testing"

	"rankfs/test/cluster"
)

// A daemon beside a datanode reads its blocks by their files, and goes on right
// when the datanode is killed and its socket goes.
func TestLocalBlocksByFile(t *testing.T) {
	c := cluster.Exclusive(t)
	path := c.Dir(t) + "/f"
	content := lines(5000)
	c.Host("data1").Put(t, path, []byte(content), 2, block)
	d := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile()).start()
	d.create("train", path)
	// read fetches all of it anew.
	read := func(when string) {
		t.Helper()
		d.must(rankfs, "--run", d.dir+"/run", "cache", "evict", "train")
		if got, err := d.read("train"); err != nil || got != content {
			t.Errorf("%s: other bytes, or %v", when, err)
		}
	}
	read("in peace")
	s := d.status().HDFS
	if s.LocalBlocks != "short-circuit" || s.Files < uint64(len(content)) || s.Files != s.Bytes || s.Files != s.Local {
		t.Errorf("status says %+v", s)
	}
	open := d.must("sh", "-c", `ls -l /proc/"$0"/fd | grep -c /blk_`, fmt.Sprint(d.cmd.Process.Pid))
	if want := fmt.Sprintln(2 * ((len(content) + block - 1) / block)); open != want {
		t.Errorf("%s descriptors of blocks are open, want %s", open, want)
	}

	if err := c.Host("data1").Kill(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	read("without the datanode")
	d.must("sh", "-c", "rm /run/datanode.*")
	until(t, waitTime, "files of a datanode that is gone are given up", func() bool {
		_, err := d.tool("sh", "-c", `! ls -l /proc/"$0"/fd | grep /blk_`, fmt.Sprint(d.cmd.Process.Pid))
		return err == nil
	})
	read("without its socket")
	if s := d.status().HDFS; !strings.HasPrefix(s.LocalBlocks, "over TCP: ") {
		t.Errorf("status says %+v", s)
	}
}
