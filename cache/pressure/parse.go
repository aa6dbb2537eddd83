package pressure

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rankfs/meta/mountinfo"
)

// absent reports whether a file is not there, as far as a reader can tell: PSI
// that is switched off has files that cannot be read.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENODEV)
}

// number parses a count. What is more than 63 bits is taken for NoLimit.
func number(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, n >= 0 && (err == nil || errors.Is(err, strconv.ErrRange))
}

// field finds a line that begins with a name, and the number after it.
func field(b []byte, name string) (int64, bool) {
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) >= 2 && f[0] == name {
			return number(f[1])
		}
	}
	return 0, false
}

// readStall reads the line "some avg10=0.12 avg60=0.05 avg300=0.01 total=34" of
// PSI. What it does not understand says nothing.
func readStall(root fs.FS, name string) (Stall, error) {
	b, err := readFile(root, name)
	if err != nil {
		return Stall{}, err
	}
	for line := range bytes.Lines(b) {
		if f := strings.Fields(string(line)); len(f) > 2 && f[0] == "some" {
			return parseStall(f[1], f[len(f)-1]), nil
		}
	}
	return Stall{}, nil
}

func parseStall(mean, total string) (s Stall) {
	mean, _ = strings.CutPrefix(mean, "avg10=")
	if percent, err := strconv.ParseFloat(mean, 64); err == nil && percent >= 0 && percent <= 100 {
		s.Mean = percent / 100
	}
	total, _ = strings.CutPrefix(total, "total=")
	if us, ok := number(total); ok && us < math.MaxInt64/1000 {
		s.Total = time.Duration(us) * time.Microsecond
	}
	return s
}

// trees finds the hierarchies that may limit memory: version 2, version 1,
// or both, where the first has no files for memory.
func (s system) trees() ([]tree, error) {
	groups, err := readFile(s.root, "proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var trees []tree
	for line := range bytes.Lines(groups) {
		f := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 3)
		kind, files := "cgroup2", version2
		switch {
		case len(f) != 3:
			continue
		case hasWord(f[1], "memory"):
			kind, files = "cgroup", version1
		case f[0] != "0" || f[1] != "":
			continue
		}
		if mount, above, ok := findMount(s.mounts, kind); ok {
			trees = append(trees, tree{mount, locate(s.root, mount, above, f[2]), files})
		}
	}
	return trees, nil
}

// locate returns the directory of a group. In a container the mount may show
// only what is below a group above, or the group may not be visible at all:
// then the mount point itself stands for it.
func locate(root fs.FS, mount, above, group string) string {
	if above != "/" {
		below, ok := strings.CutPrefix(group, above)
		if !ok || below != "" && below[0] != '/' {
			return mount
		}
		group = below
	}
	dir := path.Join(mount, path.Clean("/"+group))
	if info, err := fs.Stat(root, dir); err != nil || !info.IsDir() {
		return mount
	}
	return dir
}

// findMount finds where a hierarchy is mounted, as a name for an fs.FS, and
// which of its directories is the root there.
func findMount(mounts []mountinfo.Mount, kind string) (mount, above string, ok bool) {
	for _, m := range mounts {
		if m.Type != kind || kind == "cgroup" && !hasWord(m.Options, "memory") {
			continue
		}
		mount = strings.TrimPrefix(path.Clean(m.Point), "/")
		if fs.ValidPath(mount) && mount != "." {
			return mount, m.Root, true
		}
	}
	return "", "", false
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// readFile reads a file that need not be there: a root group has no limits, a
// kernel may have no PSI, and a group may just have been removed.
func readFile(root fs.FS, name string) ([]byte, error) {
	b, err := fs.ReadFile(root, name)
	if err != nil && !absent(err) {
		return nil, err
	}
	return b, nil
}
