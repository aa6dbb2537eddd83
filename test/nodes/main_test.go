package nodes_test

import (
	"fmt"
	"os"
	"testing"

	"rankfs/test/daemon"
)

// rankfs is the daemon and the command.
var rankfs string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	program, remove, err := daemon.Build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	rankfs = program
	return m.Run()
}
