package hdfs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// Whatever kind of checksums blocks have, and for how many bytes one, they are read by
// file and checked, though the configuration says to skip that: a bit that is flipped on
// the disk is found, and the namenode told.
func TestLocalBlocksWithOtherSums(t *testing.T) {
	c := cluster.MountsAlone(t)
	dir := c.Dir(t)
	content := lines(5000)
	text := filepath.Join(t.TempDir(), "text")
	check(t, os.WriteFile(text, []byte(content), 0o644))
	p := newPlace(t, c, "data1", "--hadoop-conf", skippingSums(t, c))
	for _, row := range []struct {
		kind string
		code byte
		per  uint32
	}{
		{"CRC32", 1, 512},
		{"CRC32", 1, 4096},
		{"CRC32C", 2, 4096},
	} {
		view := fmt.Sprintf("%s-%d", strings.ToLower(row.kind), row.per)
		t.Run(view, func(t *testing.T) {
			d := (&place{p.For(t), t, c}).start()
			file := dir + "/" + view
			out, err := d.Host.Java(t.Context(), "org.apache.hadoop.fs.FsShell", "-D", "dfs.checksum.type="+row.kind,
				"-D", fmt.Sprint("dfs.bytes-per-checksum=", row.per), "-D", fmt.Sprint("dfs.blocksize=", block), "-put", text, file).CombinedOutput()
			if err != nil {
				t.Fatalf("put the file: %v: %s", err, out)
			}
			check(t, c.WaitReplicas(t.Context(), file, twice))
			d.create(view, file, "--ranks", fmt.Sprint(jobRanks))
			j := d.readers(view, file, content)
			blocks := j.blocks()
			if len(blocks) < 2 {
				t.Fatalf("the host has %d blocks", len(blocks))
			}
			for _, id := range blocks {
				name, err := j.Host.Sums(id)
				check(t, err)
				sums, err := os.ReadFile(name)
				check(t, err)
				if head := binary.BigEndian.AppendUint32([]byte{0, 1, row.code}, row.per); !bytes.HasPrefix(sums, head) {
					t.Fatalf("%s begins with %x, not %x", name, sums[:len(head)], head)
				}
			}
			check(t, j.Host.CorruptReplicaAt(blocks[1], 5000))
			j.says("a flipped bit", "short-circuit; 1 block over TCP: ", "does not match")
			eventually.Within(t, toolTime, "the namenode knows", func() bool { return t.Failed() || j.withdrawn(blocks[1]) })
			j.goOn("a flipped bit")
			if s := j.status().HDFS; s.Corrupt == 0 {
				t.Errorf("status says %+v", s)
			}
			j.end()
		})
	}
}

// skippingSums is a configuration of clients that read by file and check nothing.
func skippingSums(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(c.ConfByFile())))
	name := filepath.Join(dir, "hdfs-site.xml")
	conf, err := os.ReadFile(name)
	check(t, err)
	const end = "</configuration>"
	if !bytes.Contains(conf, []byte(end)) {
		t.Fatalf("%s is %s", name, conf)
	}
	const skip = "<property><name>dfs.client.read.shortcircuit.skip.checksum</name><value>true</value></property>"
	check(t, os.WriteFile(name, bytes.Replace(conf, []byte(end), []byte(skip+end), 1), 0o644))
	return dir
}
