package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"rankfs/test/eventually"
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
// its namenode is gone. The namenodes may just be recovering from the test.
func (c *Cluster) asRoot(t testing.TB, do func(*hdfs.Client) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), busyTime)
	defer cancel()
	err := eventually.Until(ctx, func() error {
		client, err := c.Hosts()[0].HDFS("root")
		if err != nil {
			return err
		}
		return errors.Join(do(client), client.Close())
	})
	if err != nil {
		t.Error(err)
	}
}

// busyTime bounds what HDFS does at once, unless it has just begun, or the machine
// has much else to do.
const busyTime = 2 * time.Minute

// Put writes a file from the host, whose own datanode gets a replica of each
// block.
func (h *Host) Put(t testing.TB, name string, content []byte, replication int, block int64) {
	t.Helper()
	client, err := h.HDFS("root")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.MkdirAll(path.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	// The library gives up where the namenode has not heard of a block when the
	// next one is asked for, or has just begun and knows of no room yet.
	eventually.Done(t, busyTime, "write "+name, func() error {
		err := put(client, name, content, replication, block)
		if err != nil {
			client.Remove(name)
		}
		return err
	})
}

func put(client *hdfs.Client, name string, content []byte, replication int, block int64) error {
	w, err := client.CreateFile(name, replication, block, 0o644)
	if err != nil {
		return err
	}
	if len(content) > 0 { // else the library asks for a block that stays empty
		if _, err := io.Copy(w, bytes.NewReader(content)); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return Finish(w)
}

// Finish closes a file, which takes until enough datanodes have it.
func Finish(w *hdfs.FileWriter) error {
	ctx, cancel := context.WithTimeout(context.Background(), busyTime)
	defer cancel()
	var failed error
	late := eventually.Until(ctx, func() error {
		err := w.Close()
		if hdfs.IsErrReplicating(err) {
			return err
		}
		failed = err
		return nil
	})
	if late != nil {
		return fmt.Errorf("wait for replicas: %w", late)
	}
	return failed
}
