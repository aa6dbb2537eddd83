// Package onhost holds cluster.Main to its word: its tests run on a host.
package onhost

import (
	"os"
	"testing"

	"github.com/colinmarc/hdfs/v2"

	"rankfs/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, "client")) }

func TestOnHost(t *testing.T) {
	if name, err := os.Hostname(); err != nil || name != "client" {
		t.Errorf("on host %q, %v", name, err)
	}
	if _, err := os.Stat("main_test.go"); err != nil {
		t.Errorf("not in the package's folder: %v", err)
	}
	// A client that knows nothing of the harness.
	c := cluster.Shared(t)
	client, err := hdfs.NewClient(hdfs.ClientOptions{Addresses: c.Addresses(), User: "root"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	file := c.Dir(t) + "/file"
	if err := client.CreateEmptyFile(file); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Stat(file); err != nil {
		t.Error(err)
	}
}
