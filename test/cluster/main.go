package cluster

import (
	"context"
	"fmt"
	"os"
	"testing"

	"rankfs/test/cluster/internal/netns"
)

// inside says in the environment of a test binary on which host it is.
const inside = "RANKFS_TEST_HOST"

// Main is for a TestMain whose tests are to be on a host of the plain cluster,
// with all that they do in the same process: it becomes the same program on
// that host, and there runs the tests.
func Main(m *testing.M, host string) int {
	c, err := Open(context.Background(), "plain")
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	defer c.Close()
	if os.Getenv(inside) == host {
		return m.Run()
	}
	if err := c.Host(host).become(); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
	}
	return 1
}

// become replaces this process by the same program on the host.
func (h *Host) become() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env := append(os.Environ(), inside+"="+h.Name)
	return netns.Exec(h.Pid, append([]string{self}, os.Args[1:]...), env)
}
