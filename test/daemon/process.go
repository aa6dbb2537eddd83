package daemon

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A Process is a daemon that was started.
type Process struct {
	*exec.Cmd
	Ended chan struct{} // closed at its end
	Err   error         // of that, once it has ended
	out   *os.File
}

// MountLine are the arguments of a command that mounts.
func MountLine(run, mount, state string, options ...string) []string {
	return append([]string{"--run", run, "--json", "mount", mount, "--state", state}, options...)
}

// Launch starts a daemon by a command, with what it logs at the end of a file.
func Launch(cmd *exec.Cmd, log string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.Stderr = file
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Process{Cmd: cmd, Ended: make(chan struct{}), out: out.(*os.File)}, nil
}

// AwaitReady waits until the daemon says that it has mounted there. It is to be called
// once.
func (p *Process) AwaitReady(mount string, limit time.Duration) error {
	err := p.out.SetReadDeadline(time.Now().Add(limit))
	line := ""
	if err == nil {
		line, err = bufio.NewReader(p.out).ReadString('\n')
	}
	go func() { p.Err = p.Wait(); close(p.Ended) }()
	if err != nil || !strings.Contains(line, mount) {
		return fmt.Errorf("daemon on %s is not ready: it says %q: %v", mount, line, err)
	}
	return nil
}
