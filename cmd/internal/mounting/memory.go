package mounting

import (
	"bufio"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// defaultRAM is a quarter of the memory that this process may use: a job's
// own buffers, the framework and the page cache of its sources need the rest,
// and slabs, unlike the page cache, do not shrink under pressure. The root is
// that of the file system.
func defaultRAM(root fs.FS) int64 {
	memory := installed(root)
	if limit := cgroupLimit(root); limit > 0 && (memory == 0 || limit < memory) {
		memory = limit
	}
	const page = 2 << 20    // slabs are made of huge pages
	const minRAM = 64 << 20 // a few small batches, whatever /proc says
	return max(memory/4/page*page, minRAM)
}

// installed is the memory of the machine, or zero.
func installed(root fs.FS) int64 {
	f, err := root.Open("proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 53)
			return kib << 10
		}
	}
	return 0
}

// cgroupLimit is the smallest memory limit of this process's control group
// and of those around it, or zero.
func cgroupLimit(root fs.FS) (limit int64) {
	data, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		// HIERARCHY:CONTROLLERS:PATH, with no controllers in version 2.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var top, file string
		switch parts[1] {
		case "":
			top, file = "sys/fs/cgroup", "memory.max"
		case "memory":
			top, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			if n := readLimit(root, path.Join(top, dir, file)); n > 0 && (limit == 0 || n < limit) {
				limit = n
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit
}

// readLimit is the number in a file, or zero where there is none: "max".
func readLimit(root fs.FS, name string) int64 {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n
}
