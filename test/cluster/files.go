package cluster

import (
	"crypto/rand"
	"errors"
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
	dir := path.Join("/test", strings.ReplaceAll(t.Name(), "/", "-")+"-"+rand.Text()[:6])
	c.asRoot(t, func(client *hdfs.Client) error { return client.MkdirAll(dir, 0o777) })
	t.Cleanup(func() {
		c.asRoot(t, func(client *hdfs.Client) error { return client.RemoveAll(dir) })
	})
	return dir
}

// asRoot does something with a new client: one that is older may not know that
// its namenode is gone.
func (c *Cluster) asRoot(t testing.TB, do func(*hdfs.Client) error) {
	t.Helper()
	client, err := c.Hosts()[0].HDFS("root")
	if err == nil {
		err = errors.Join(do(client), client.Close())
	}
	if err != nil {
		t.Error(err)
	}
}
