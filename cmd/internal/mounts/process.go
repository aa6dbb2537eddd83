package mounts

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// startTime is when a process began, in clock ticks since boot.
func startTime(pid int) (uint64, error) {
	fields, err := processStat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// processStat returns the fields of /proc/PID/stat from the third, the state,
// on. The second is the program's name, which may hold anything.
func processStat(pid int) ([]string, error) {
	return statFields(fmt.Sprintf("/proc/%d/stat", pid))
}

func statFields(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 29 {
		return nil, fmt.Errorf("read %s: %d fields", file, len(fields))
	}
	return fields, nil
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
