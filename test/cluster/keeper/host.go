package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rankfs/test/cluster/internal/site"
)

// hold is the process that is a host: it lives in the namespaces that make the
// host, furnishes them, and stays until its stdin ends. It prints its process id,
// reads a line when its end of the network cable is there, and prints that the host
// is up.
func hold(args []string) error {
	if len(args) != 3 {
		return errors.New("use keeper host NAME ADDRESS DIR")
	}
	name, address, dir := args[0], args[1], args[2]
	if err := unix.Sethostname([]byte(name)); err != nil {
		return err
	}
	if err := furnish(dir); err != nil {
		return err
	}
	pid, err := self()
	if err != nil {
		return err
	}
	fmt.Println(pid)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	if err := ip("addr add "+address+"/24 dev eth0", "link set eth0 up", "link set lo up"); err != nil {
		return err
	}
	fmt.Println("up")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// self is this process as the machine outside counts. /proc is that of outside.
func self() (int, error) {
	pid, err := os.Readlink("/proc/self")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(pid)
}

// furnish gives a host its own names of hosts, and its own places where
// daemons leave what others find.
func furnish(dir string) error {
	own := map[string]string{"run": "/run", "var": "/var/lib/rankfs"}
	for sub, place := range own {
		if err := errors.Join(os.MkdirAll(place, 0o755), bind(filepath.Join(dir, sub), place)); err != nil {
			return err
		}
	}
	return bind(filepath.Join(dir, "..", "..", "hosts.txt"), "/etc/hosts")
}

func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", from, to, err)
	}
	return nil
}

// A holder is the keeper's side of hold.
type holder struct {
	pid   int // as the keeper counts
	stdin io.WriteCloser
	lines *bufio.Reader
}

// startHost makes the namespaces of a host.
func startHost(s *site.Site, h *site.Host) (*holder, error) {
	dir := s.HostDir(h.Name)
	for _, sub := range []string{"run", "var", "tmp", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(filepath.Join(dir, "tmp"), 0o777|os.ModeSticky); err != nil {
		return nil, err
	}
	c := exec.Command(s.Keeper(), "host", h.Name, h.IP, dir)
	c.Stderr = os.Stderr
	c.SysProcAttr = &unix.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWNS,
	}
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start host %s: %w", h.Name, err)
	}
	holder := &holder{c.Process.Pid, in, bufio.NewReader(out)}
	line, err := holder.lines.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start host %s: %w", h.Name, err)
	}
	h.Pid, err = strconv.Atoi(strings.TrimSpace(line))
	return holder, err
}

// connect brings a host's network up once its cable is there.
func (h *holder) connect() error {
	if _, err := io.WriteString(h.stdin, "\n"); err != nil {
		return err
	}
	_, err := h.lines.ReadString('\n')
	return err
}
