package mounts

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Ending finds the daemon of a mount point, or of a state directory, that was
// killed or has begun to end, but not ended yet: the kernel takes its memory and
// its files away one after the other, and some are still taken.
func Ending(run, mount, state string) (Entry, bool) {
	files, _ := filepath.Glob(filepath.Join(run, "*.json"))
	for _, file := range files {
		e, err := read(file)
		if err == nil && (e.Mount == mount || e.State == state) && e.PID != os.Getpid() && e.ending() {
			return e, true
		}
	}
	return Entry{}, false
}

// ending reports whether a thread of the process, which has threads still, was
// killed or is about to leave.
func (e Entry) ending() bool {
	if !e.running() {
		return false
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", e.PID))
	for _, stat := range threads {
		if fields, err := statFields(stat); err == nil && leaves(fields) {
			return true
		}
	}
	return false
}

// leaves reports whether a thread with such fields is not to run its program
// again: one that has ended, one that does so, and one that SIGKILL waits for.
func leaves(fields []string) bool {
	const (
		exiting = 0x4          // PF_EXITING of the flags
		killed  = 1 << (9 - 1) // SIGKILL of the pending signals
	)
	if fields[0] == "Z" || fields[0] == "X" {
		return true
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	if err == nil && flags&exiting != 0 {
		return true
	}
	pending, err := strconv.ParseUint(fields[28], 10, 64)
	return err == nil && pending&killed != 0
}
