package mounting

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/failure"
	"rankfs/meta"
)

// The bounds of a background mount.
const (
	readyTime = 60 * time.Second // a large NVMe directory is looked through first
	endTime   = 5 * time.Second  // for a child that was told to stop
	maxLog    = 10 << 20         // of the log of one daemon and those before it
)

// A Mounted is a mount that is ready.
type Mounted struct {
	Mount string `json:"mount"`
	PID   int    `json:"pid"`
	State string `json:"state_dir"`
	Log   string `json:"log,omitempty"` // where a background daemon writes
}

// Text writes it for a person.
func (m Mounted) Text(w io.Writer) {
	fmt.Fprintf(w, "mounted %s (pid %d)\n", m.Mount, m.PID)
}

// An outcome is the one line by which the child tells how the mount went.
type outcome struct {
	Ready   bool   `json:"ready"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Code    int    `json:"code,omitempty"`
}

// A toldError is an error that the child reported, with its exit code.
type toldError struct{ outcome }

func (e toldError) Error() string { return e.Message }
func (e toldError) ExitCode() int { return e.Code }

// A Reporter is the child's end of the pipe. It speaks once.
type Reporter struct{ pipe *os.File }

// NewReporter speaks to the parent on a descriptor; below zero there is no parent.
func NewReporter(fd int) *Reporter {
	if fd < 0 {
		return &Reporter{}
	}
	unix.CloseOnExec(fd)
	return &Reporter{os.NewFile(uintptr(fd), "ready")}
}

// Ready reports whether there was a parent to tell.
func (r *Reporter) Ready() bool { return r.tell(outcome{Ready: true}) }

// Failed tells the parent why there is no mount, if err is not nil.
func (r *Reporter) Failed(err error) {
	if err == nil {
		return
	}
	o := outcome{Message: meta.Plain(err), Code: failure.ExitCode(err)}
	var h failure.Hinted
	if errors.As(err, &h) {
		o.Hint = h.Next
	}
	r.tell(o)
}

func (r *Reporter) tell(o outcome) bool {
	if r.pipe == nil {
		return false
	}
	_ = json.NewEncoder(r.pipe).Encode(o)
	r.pipe.Close()
	r.pipe = nil
	return true
}

// Background starts this program again, detached from the terminal, and
// returns when its mount is ready.
func Background(ctx context.Context, run string, o Options, dir string) (Mounted, error) {
	if err := o.Check(dir); err != nil {
		return Mounted{}, err
	}
	log, forget, err := openLog(o.State)
	if err != nil {
		return Mounted{}, fmt.Errorf("mount on %s: %w", dir, err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return Mounted{}, fmt.Errorf("mount on %s: %w", dir, err)
	}
	defer r.Close()
	child := exec.Command("/proc/self/exe") // PATH may be empty
	child.Args = append([]string{"rankfs", "--run=" + run}, o.args(dir)...)
	child.Env = slices.DeleteFunc(o.cluster.environ(o.login.env(os.Environ())), func(s string) bool { return strings.HasPrefix(s, "NOTIFY_SOCKET=") })
	child.Dir = "/"
	child.Stdout, child.Stderr = log, log
	child.ExtraFiles = []*os.File{w}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = child.Start()
	w.Close()
	if err != nil {
		return Mounted{}, fmt.Errorf("mount on %s: %w", dir, err)
	}
	if err := awaitReady(ctx, r); err != nil {
		end(child)
		var told toldError
		if errors.As(err, &told) {
			forget()
			return Mounted{}, err
		}
		if ctx.Err() != nil {
			forget()
			return Mounted{}, fmt.Errorf("mount on %s: %w", dir, err)
		}
		return Mounted{}, failure.Hint(fmt.Errorf("mount on %s: %w", dir, err), "see the log: %s", log.Name())
	}
	m := Mounted{Mount: dir, PID: child.Process.Pid, State: o.State, Log: log.Name()}
	return m, child.Process.Release()
}

// awaitReady reads the child's line.
func awaitReady(ctx context.Context, pipe *os.File) error {
	_ = pipe.SetReadDeadline(time.Now().Add(readyTime))
	stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := bufio.NewReader(io.LimitReader(pipe, 64<<10)).ReadBytes('\n')
	var o outcome
	switch {
	case ctx.Err() != nil:
		return meta.Worded(context.Canceled, "stopped by a signal before the daemon was ready, which was ended")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the daemon is not ready after %s", meta.FormatTime(readyTime))
	case err != nil || json.Unmarshal(line, &o) != nil:
		return errors.New("the daemon ended before it was ready")
	case o.Ready:
		return nil
	case o.Hint != "":
		return failure.Hinted{Err: toldError{o}, Next: o.Hint}
	}
	return toldError{o}
}

// end stops a child that is of no use and waits for it; not for long for one that cannot even be
// killed, as a disk does not answer it.
func end(child *exec.Cmd) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = child.Wait()
	}()
	_ = child.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
		return
	case <-time.After(endTime):
	}
	_ = child.Process.Kill()
	select {
	case <-ended:
	case <-time.After(endTime):
	}
}

// openLog opens the log in the state directory, or nothing if that cannot be
// written: the daemon itself has the words for what is wrong with it. To forget the log is
// to remove it, with the directory that was made for it, unless a daemon has begun there.
func openLog(state string) (log *os.File, forget func(), err error) {
	name := filepath.Join(state, "rankfs.log")
	made := meta.Missing(state)
	if os.MkdirAll(state, 0o700) == nil {
		if info, err := os.Stat(name); err == nil && info.Size() > maxLog {
			_ = os.Rename(name, name+".1")
		}
		if f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err == nil {
			return f, func() {
				if in, _ := os.ReadDir(state); len(in) != 1 {
					return
				}
				if len(made) > 0 {
					_ = os.Remove(name)
				}
				for _, dir := range made {
					_ = os.Remove(dir) // unless another mount has its own there
				}
			}, nil
		}
	}
	log, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	return log, func() {}, err
}
