package hdfs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
	"rankfs/test/hadoop"
)

// A volume that a running datanode gives back, so that its disk can be taken out, has no
// file open in a daemon a while later, though ranks read its blocks: they come from other
// hosts then, and those of the other volume by file.
func TestLocalVolumeTakenOut(t *testing.T) {
	c := cluster.MountsAlone(t)
	h := c.Host("data1")
	volume := t.TempDir()
	check(t, h.Kill(cluster.DataNode))
	withDatanode(t, h, "-Ddfs.datanode.data.dir=file://${host.dir}/data,file://"+volume)
	eventually.Within(t, javaTime, "the datanode has both volumes", func() bool {
		volumes, err := h.Volumes(t.Context())
		return err == nil && len(volumes) == 2
	})

	file, content := c.Dir(t)+"/volume", lines(5000)
	h.Put(t, file, []byte(content), everywhere, block)
	ctx, cancel := context.WithTimeout(t.Context(), javaTime)
	defer cancel()
	check(t, c.WaitReplicas(ctx, file, everywhere))
	d := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile()).start()
	d.create("volume", file, "--ranks", fmt.Sprint(jobRanks))
	j := d.readers("volume", file, content)
	if j.openBelow(volume) == 0 {
		t.Fatal("no block of the volume is read by file")
	}

	// Its configuration as it is on disk has the other volume alone.
	out, err := c.Host("client").Java(t.Context(), "org.apache.hadoop.hdfs.tools.DFSAdmin", "-reconfig", "datanode", h.IP+":9867", "start").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually.Within(t, javaTime, "the datanode has given the volume back", func() bool {
		volumes, err := h.Volumes(t.Context())
		return err == nil && len(volumes) == 1
	})
	j.goOn("with one volume")
	eventually.Within(t, toolTime, "no file of the volume is open", func() bool { return j.openBelow(volume) == 0 || t.Failed() })
	before := j.status().HDFS.Files
	j.goOn("without the files of the volume")
	if j.status().HDFS.Files == before {
		t.Error("blocks of the other volume are not read by file any more")
	}
	j.end()
}

// withDatanode has a host's datanode, which does not run, run with a setting of its own
// until the test ends. That is said on its command line, which it reads once.
func withDatanode(t *testing.T, h *cluster.Host, setting string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	datanode := h.JavaByFile(ctx, hadoop.DaemonOptions, "org.apache.hadoop.hdfs.server.datanode.DataNode", setting)
	check(t, datanode.Start())
	t.Cleanup(func() { stop(); datanode.Wait() })
}

// openBelow counts the files of blocks in a directory that the daemon has open.
func (d *place) openBelow(dir string) (n int) {
	d.t.Helper()
	for fd := range d.openFiles() {
		if name, err := os.Readlink(filepath.Join(fmt.Sprintf("/proc/%d/fd", d.PID()), fmt.Sprint(fd))); err == nil && strings.HasPrefix(name, dir) {
			n++
		}
	}
	return n
}
