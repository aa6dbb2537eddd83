package cluster

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/colinmarc/hdfs/v2"
)

// HDFS is a client of the cluster that is on the host: the namenodes and
// datanodes see the host's address, wherever the caller is.
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
	client.Close()
	t.Cleanup(func() {
		if err := c.remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// remove removes a directory. The test may have left the namenodes just
// recovering from what it did.
func (c *Cluster) remove(dir string) (err error) {
	for range 20 {
		client, cerr := c.Hosts()[0].HDFS("root")
		if err = cerr; err == nil {
			err = client.RemoveAll(dir)
			client.Close()
		}
		if err == nil || os.IsNotExist(err) {
			return nil
		}
		time.Sleep(250 * time.Millisecond)
	}
	return err
}

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
	for range 20 {
		if err = put(client, name, content, replication, block); err == nil {
			return
		}
		client.Remove(name)
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatal(err)
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
func Finish(w *hdfs.FileWriter) (err error) {
	for range 200 {
		if err = w.Close(); !hdfs.IsErrReplicating(err) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("wait for replicas: %w", err)
}
