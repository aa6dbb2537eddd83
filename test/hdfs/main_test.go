package hdfs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	hosts "rankfs/test/daemon"
)

// rankfs is the daemon and the command.
var rankfs string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rankfs-hdfs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	rankfs = filepath.Join(dir, "rankfs")
	if out, err := hosts.BuildCommand(rankfs).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build rankfs: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
