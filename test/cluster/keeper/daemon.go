package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"rankfs/test/cluster/internal/control"
	"rankfs/test/cluster/internal/site"
)

// A daemon is a process of Hadoop's on a host.
type daemon struct {
	cmd  *exec.Cmd
	pid  int           // as the machine outside counts
	poor bool          // has no native library
	gone chan struct{} // closed when it has ended
}

type place struct{ host, daemon string }

// daemons are those that run; one that ended is not among them.
type daemons struct {
	site *site.Site
	mu   struct {
		sync.Mutex
		running map[place]*daemon
		ended   func(error) // told of each that ends; may be nil
	}
}

func newDaemons(s *site.Site) *daemons {
	d := &daemons{site: s}
	d.mu.running = make(map[place]*daemon)
	return d
}

// command is a command on a host. It has little of the environment, which is
// that of whatever test came first.
func command(s *site.Site, host string, line []string) (*exec.Cmd, error) {
	h, err := s.Host(host)
	if err != nil {
		return nil, err
	}
	dir := s.HostDir(host)
	args := append([]string{"enter", strconv.Itoa(h.Pid), filepath.Join(dir, "tmp")}, line...)
	c := exec.Command(s.Keeper(), args...)
	c.Dir = dir
	return c, nil
}

// start starts a daemon that belongs on a host, unless it runs. One that runs with the
// native library though it is to be poor, or the other way round, is killed first.
func (d *daemons) start(p place, poor bool) error {
	d.mu.Lock()
	one := d.mu.running[p]
	d.mu.Unlock()
	if one != nil && one.poor != poor {
		if err := d.signal(p, syscall.SIGKILL); err != nil {
			return err
		}
	}
	h, err := d.site.Host(p.host)
	if err != nil {
		return err
	}
	if !slices.Contains(h.Daemons, p.daemon) {
		return fmt.Errorf("host %s has no %s", p.host, p.daemon)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.running[p] != nil {
		return nil
	}
	line := d.site.Daemon(p.host, p.daemon, !poor)
	c, err := command(d.site, p.host, line)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(d.log(p), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	pid, err := startOuter(c)
	if err != nil {
		return err
	}
	one = &daemon{c, pid, poor, make(chan struct{})}
	d.mu.running[p] = one
	go d.wait(p, one)
	return nil
}

func (d *daemons) wait(p place, one *daemon) {
	err := one.cmd.Wait()
	if err == nil {
		err = errors.New("with status 0")
	}
	d.mu.Lock()
	delete(d.mu.running, p)
	ended := d.mu.ended
	d.mu.Unlock()
	err = fmt.Errorf("%s on %s ended: %w; see %s", p.daemon, p.host, err, d.log(p))
	fmt.Fprintln(os.Stderr, err)
	if ended != nil {
		ended(err)
	}
	close(one.gone)
}

// onEnd has f called for each daemon that ends, from now on; nil calls nothing.
func (d *daemons) onEnd(f func(error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.ended = f
}

func (d *daemons) log(p place) string {
	return filepath.Join(d.site.HostDir(p.host), "log", p.daemon)
}

// signal sends a daemon a signal. One that is killed is gone on return.
func (d *daemons) signal(p place, sig syscall.Signal) error {
	d.mu.Lock()
	one := d.mu.running[p]
	d.mu.Unlock()
	if one == nil {
		return fmt.Errorf("no %s runs on %s", p.daemon, p.host)
	}
	if err := one.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if sig == syscall.SIGKILL {
		<-one.gone
	}
	return nil
}

// killAll ends all of them.
func (d *daemons) killAll() {
	for _, h := range d.site.Hosts {
		for _, name := range h.Daemons {
			d.signal(place{h.Name, name}, syscall.SIGKILL) // none runs: as well
		}
	}
}

// startOuter starts a command and says which process it is, as the machine
// outside counts. Only /proc knows: it is that of the machine outside.
func startOuter(c *exec.Cmd) (pid int, err error) {
	fd := -1
	c.SysProcAttr = &syscall.SysProcAttr{PidFD: &fd}
	if err := c.Start(); err != nil {
		return 0, err
	}
	if fd < 0 {
		return 0, errors.New("start a daemon: this kernel has no pidfd; Linux 5.4 has")
	}
	defer syscall.Close(fd)
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(info), "\nPid:")
	line, _, _ := strings.Cut(after, "\n")
	return strconv.Atoi(strings.TrimSpace(line))
}

// pid is that of a daemon, 0 if it does not run.
func (d *daemons) pid(p place) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one := d.mu.running[p]; one != nil {
		return one.pid
	}
	return 0
}

func (d *daemons) do(o control.Order) (a control.Answer) {
	p := place{o.Host, o.Daemon}
	var err error
	switch o.Do {
	case control.Ping:
	case control.Start:
		err = d.start(p, o.Poor)
	case control.Signal:
		err = d.signal(p, o.Signal)
	default:
		err = fmt.Errorf("unknown order %q", o.Do)
	}
	if err != nil {
		a.Error = err.Error()
	}
	a.Pid = d.pid(p)
	return a
}
