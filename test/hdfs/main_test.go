package hdfs_test

import (
	"os"
	"testing"

	"rankfs/test/daemon"
)

// rankfs is the daemon and the command.
var rankfs string

func TestMain(m *testing.M) { os.Exit(daemon.Main(m, &rankfs)) }
