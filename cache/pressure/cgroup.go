package pressure

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strings"
	"time"

	"rankfs/meta"
	"rankfs/meta/mountinfo"
)

// NoLimit is the limit of a group that has none.
const NoLimit = math.MaxInt64

// A Group is a cgroup with a limit, or the whole machine.
type Group struct {
	Name  string // its directory; empty is the machine
	Limit int64  // bytes: at which its tasks are throttled or killed
	Used  int64  // bytes that the kernel cannot reclaim at once
	Stall Stall
}

// Room is the memory that the group can still use; it may be below zero.
func (g Group) Room() int64 { return g.Limit - g.Used }

// spare is room that may be used without coming near the limit.
func (g Group) spare() int64 { return g.Room() - reserve(g.Limit) }

// stalled is the part of a time in which tasks of g waited, if last was seen
// before it.
func (g Group) stalled(last Group, since time.Duration) float64 {
	if g.Name != last.Name || since <= 0 || g.Stall.Total < last.Stall.Total {
		return g.Stall.Mean
	}
	return min(float64(g.Stall.Total-last.Stall.Total)/float64(since), 1)
}

// reserve is left free of a limit: for what others take between two
// samples, this process's own heap among them, and what the kernel needs to work.
func reserve(limit int64) int64 {
	return min(max(limit/16, 32<<20), 1<<30, limit/4)
}

// A tree is where a process is in one hierarchy of cgroups.
type tree struct {
	mount, dir string // the second is the first or below
	files      files
}

// files are the names that a version of cgroups gives to the same things.
//
// All of the page cache can be had back, also the active part of it, as in
// MemAvailable. If that counted as used, a source that is read again and again
// would fill what the cache gives up, and the cache would give up more, until
// nothing was left of it. Slabs are not page cache to the kernel but shmem.
type files struct {
	limits, reclaim []string
	used, stall     string
}

var (
	version1 = files{limits: []string{"memory.limit_in_bytes"}, used: "memory.usage_in_bytes", reclaim: []string{"total_inactive_file", "total_active_file"}}
	version2 = files{limits: []string{"memory.max", "memory.high"}, used: "memory.current", reclaim: []string{"inactive_file", "active_file"}, stall: "memory.pressure"}
)

// tightest returns the group with the least to spare, from that of the process up
// to the mount point, beyond which nothing can be seen.
func (t tree) tightest(root fs.FS) (Group, error) {
	least := Group{Limit: NoLimit}
	for dir := t.dir; ; dir = path.Dir(dir) {
		g, err := t.group(root, dir)
		if err != nil {
			return least, err
		}
		if g.spare() < least.spare() {
			least = g
		}
		if dir == t.mount || dir == "." {
			break
		}
	}
	if least.Name == "" || t.files.stall == "" {
		return least, nil
	}
	var err error
	least.Stall, err = readStall(root, path.Join(least.Name, t.files.stall))
	return least, err
}

// group reads one cgroup. Without a limit it needs no more reading.
func (t tree) group(root fs.FS, dir string) (Group, error) {
	g := Group{Name: dir, Limit: NoLimit}
	for _, name := range t.files.limits {
		n, err := readNumber(root, path.Join(dir, name))
		if err != nil {
			return g, err
		}
		g.Limit = min(g.Limit, n)
	}
	if g.Limit >= NoLimit>>1 { // version 1 says no by a number of pages
		return Group{Limit: NoLimit}, nil
	}
	used, err := readNumber(root, path.Join(dir, t.files.used))
	if err != nil || used == NoLimit { // it was removed just now
		return Group{Limit: NoLimit}, err
	}
	stat, err := readFile(root, path.Join(dir, "memory.stat"))
	if err != nil {
		return g, err
	}
	for _, name := range t.files.reclaim {
		n, _ := field(stat, name)
		used = max(0, used-n)
	}
	g.Used = used
	return g, nil
}

// readNumber returns NoLimit for a file that says max, or is not there.
func readNumber(root fs.FS, name string) (int64, error) {
	b, err := readFile(root, name)
	if err != nil {
		return 0, err
	}
	s := strings.TrimSpace(string(b))
	if s == "" || s == "max" {
		return NoLimit, nil
	}
	n, ok := number(s)
	if !ok {
		return 0, fmt.Errorf("%s: %q: %w", name, s, meta.ErrInvalid)
	}
	return n, nil
}

// trees finds the hierarchies that may limit memory: version 2, version 1,
// or both, where the first has no files for memory.
func trees(root fs.FS, mounts []mountinfo.Mount) (all []tree, err error) {
	groups, err := readFile(root, "proc/self/cgroup")
	if err != nil {
		return nil, err
	}
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
		if mount, above, ok := findMount(mounts, kind); ok {
			all = append(all, tree{mount, locate(root, mount, above, f[2]), files})
		}
	}
	return all, nil
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
