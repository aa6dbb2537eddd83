package mounts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An Entry is a registered mount.
type Entry struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // of the process, in clock ticks since boot: tells a pid from its reuse
	Mount   string `json:"mount"`
	State   string `json:"state"`
	Socket  string `json:"socket"`
}

// running reports whether the process of the entry lives. A zombie does not, unless
// only its first thread has ended: the others still have its files open. The kernel
// counts no threads in a zombie whose parent is waiting for it just now.
func (e Entry) running() bool {
	fields, err := processStat(e.PID)
	if err != nil || fields[0] == "X" || fields[0] == "Z" && (fields[17] == "1" || fields[17] == "0") {
		return false
	}
	started, err := strconv.ParseUint(fields[19], 10, 64)
	return err == nil && started == e.Started
}

// Wait waits until the process of the entry has ended, or for ctx.
func (e Entry) Wait(ctx context.Context) error {
	fd, err := unix.PidfdOpen(e.PID, 0)
	if err != nil {
		return nil // no such process
	}
	defer unix.Close(fd)
	if !e.running() {
		return nil
	}
	const slice = 50 // milliseconds between two looks at ctx
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, slice)
		if n > 0 {
			return nil
		}
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("wait for pid %d: %w", e.PID, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for pid %d: %w", e.PID, context.Cause(ctx))
		}
	}
}

// answers reports whether a daemon listens on the socket. A daemon that is
// stopped still does.
func (e Entry) answers() bool {
	c, err := net.DialTimeout("unix", e.Socket, time.Second)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist)
	}
	c.Close()
	return true
}
