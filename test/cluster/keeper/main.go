// Command keeper owns a cluster of hosts for tests.
//
//	keeper up [NAME]             starts a cluster ("plain") that stays
//	keeper down [NAME]           removes it
//	keeper on HOST [COMMAND...]  runs a command, or a shell, on a host
//
// Tests start `keeper keep DIR`, which is the first process of a PID namespace
// and of the namespace that has the hosts' network: whatever ends it, the
// kernel ends all of the cluster with it. It starts `keeper host` for each
// host, which holds that host's namespaces; `keeper enter` takes a program
// there. Called hdfs, it is Hadoop's command of that name.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"rankfs/test/cluster/internal/netns"
)

const usage = "use keeper up|down [NAME], or keeper on HOST [COMMAND...]"

func main() {
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == "hdfs" {
		args = append([]string{"hdfs"}, args...)
	}
	if err := run(args); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	verbs := map[string]func([]string) error{
		"up": up, "down": down, "on": on, "hdfs": hdfs,
		"enter": enter, "keep": keep, "host": hold,
	}
	if len(args) == 0 || verbs[args[0]] == nil {
		return errors.New(usage)
	}
	return verbs[args[0]](args[1:])
}

// enter becomes a program on a host. TMPDIR is set because hosts share /tmp,
// where tests have what they give to programs.
func enter(args []string) error {
	if len(args) < 3 {
		return errors.New("use keeper enter PID TMPDIR COMMAND [ARGUMENTS]")
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("pid %q: %w", args[0], err)
	}
	os.Setenv("TMPDIR", args[1])
	return netns.Exec(pid, args[2:], os.Environ())
}
