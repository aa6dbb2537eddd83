package cluster

import (
	"crypto/rand"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/colinmarc/hdfs/v2"
)

// HDFS is a client of the cluster that is on the host: the namenodes and
// datanodes see the host's address, wherever the caller is. It is for writing
// and looking: hdfs v2.4.0 hands out the bytes of a corrupt chunk before it
// turns to another replica, and Close may return ErrReplicating and is then to
// be called again.
func (h *Host) HDFS(user string) (*hdfs.Client, error) {
	return hdfs.NewClient(hdfs.ClientOptions{
		Addresses:        h.cluster.Addresses(),
		User:             user,
		NamenodeDialFunc: h.DialContext,
		DatanodeDialFunc: h.DialContext,
	})
}

// Dir makes a directory in HDFS that is removed when the test ends.
func (c *Cluster) Dir(t testing.TB) string {
	t.Helper()
	client, err := c.Hosts()[0].HDFS("root")
	if err != nil {
		t.Fatal(err)
	}
	dir := path.Join("/test", strings.ReplaceAll(t.Name(), "/", "-")+"-"+rand.Text()[:6])
	if err := client.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.RemoveAll(dir); err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		client.Close()
	})
	return dir
}
