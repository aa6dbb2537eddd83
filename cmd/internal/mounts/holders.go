package mounts

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta/mountinfo"
)

// A Holder is a process that keeps a mount busy.
type Holder struct {
	PID  int
	Name string
	Uses []string // "open file", "mapped file", "working directory", "root directory", "mount namespace"
}

// The bounds of a search for holders, which a user waits for and reads.
const (
	maxHolders = 8
	searchTime = 10 * time.Second // on a busy machine; most take some milliseconds
)

// Holders finds the processes that use m, and whether there may be more of
// them. It compares mount ids and device numbers, never paths, and asks
// nothing of the daemon. Processes of other users are seen by root only.
func Holders(m mountinfo.Mount) (found []Holder, more bool) {
	results := make(chan Holder)
	quit := make(chan struct{})
	defer close(quit)
	go func() { // a process whose memory map is locked can make this late
		defer close(results)
		for _, pid := range processes() {
			uses := usesOf(pid, m)
			if len(uses) == 0 {
				continue
			}
			select {
			case results <- Holder{pid, processName(pid), uses}:
			case <-quit:
				return
			}
		}
	}()
	late := time.After(searchTime)
	for {
		select {
		case h, ok := <-results:
			if !ok {
				return found, false
			}
			if len(found) == maxHolders {
				return found, true
			}
			found = append(found, h)
		case <-late:
			return found, true
		}
	}
}

// Elsewhere finds the mount namespaces that have m too, by a process in each: a
// namespace begins with all mounts of the one that it is made from, and keeps
// them when they are unmounted there.
func Elsewhere(m mountinfo.Mount) (found []Holder) {
	seen := make(map[string]bool)
	for _, pid := range processes() {
		space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err != nil || seen[space] {
			continue
		}
		seen[space] = true
		table, err := mountinfo.Of(pid)
		if err != nil || !slices.ContainsFunc(table, func(o mountinfo.Mount) bool { return o.Device == m.Device }) {
			continue
		}
		found = append(found, Holder{pid, processName(pid), []string{"mount namespace"}})
	}
	return found
}

func processes() []int {
	names, _ := filepath.Glob("/proc/[0-9]*")
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func processName(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(name))
}

// usesOf says how a process uses m. What cannot be read is no use.
func usesOf(pid int, m mountinfo.Mount) []string {
	proc := fmt.Sprintf("/proc/%d/", pid)
	var uses []string
	if opens(proc, m.ID) {
		uses = append(uses, "open file")
	}
	if maps(proc, m.Device) {
		uses = append(uses, "mapped file")
	}
	if mountOf(proc+"cwd") == m.ID {
		uses = append(uses, "working directory")
	}
	if mountOf(proc+"root") == m.ID {
		uses = append(uses, "root directory")
	}
	return uses
}

func opens(proc string, id int) bool {
	files, _ := filepath.Glob(proc + "fdinfo/*")
	for _, f := range files {
		if infoMount(f) == id {
			return true
		}
	}
	return false
}

// mountOf is the id of the mount where a link of /proc leads, or -1. An
// O_PATH descriptor names a file without opening it.
func mountOf(link string) int {
	fd, err := unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	defer unix.Close(fd)
	return infoMount(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
}

func infoMount(file string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return -1
	}
	for line := range bytes.Lines(data) {
		if value, ok := strings.CutPrefix(string(line), "mnt_id:"); ok {
			if id, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
				return id
			}
		}
	}
	return -1
}

// maps reports whether a process maps a file of the device. The fourth field
// of /proc/PID/maps is the device in hexadecimal.
func maps(proc, device string) bool {
	var major, minor uint32
	if _, err := fmt.Sscanf(device, "%d:%d", &major, &minor); err != nil {
		return false
	}
	want := fmt.Sprintf("%02x:%02x", major, minor)
	f, err := os.Open(proc + "maps")
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 3 && fields[3] == want {
			return true
		}
	}
	return false
}
