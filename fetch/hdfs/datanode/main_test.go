package datanode_test

import (
	"os"
	"testing"

	"rankfs/test/cluster"
)

// The tests run on a host with a datanode, so that some replicas are local.
func TestMain(m *testing.M) { os.Exit(cluster.Main(m, "data1")) }
