package pressure

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
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

// A Stall is how long some task of a group waited for memory. It is zero where
// the kernel does not say.
type Stall struct {
	Mean  float64       // the part of the last ten seconds, 0 to 1
	Total time.Duration // since the group began
}

// Room is the memory that the group can still use; it may be below zero.
func (g Group) Room() int64 { return g.Limit - g.Used }

// spare is room that may be used without coming near the limit.
func (g Group) spare() int64 { return g.Room() - reserve(g.Limit) }

// A Sample has the limits of the process at one moment: those of the group with the least
// to spare, of the machine and all cgroups that it is in.
type Sample struct {
	Group
	// Held is memory that the asker holds and could give up.
	Held int64
	// Recent is the part of the time since the sample before, 0 to 1, in which
	// some task waited for memory.
	Recent float64
}

// String is for a log line or a status page.
func (s Sample) String() string {
	name := s.Name
	if name == "" {
		name = "the machine"
	}
	return fmt.Sprintf("%d of %d MiB of %s are used, %d by the cache; tasks waited for memory %.0f%% of the time",
		s.Used>>20, s.Limit>>20, name, s.Held>>20, 100*s.Recent)
}

// charged is the part of Held that may be within Used. The kernel charges a page to
// the group of the process that touched it first, so it can be less: evicting a slab
// that an earlier process or a peer filled makes no room in this group.
func (s Sample) charged() int64 { return min(max(s.Held, 0), s.Used) }

// stalled is the part of a time in which tasks of g waited, if last was seen
// before it.
func (g Group) stalled(last Group, since time.Duration) float64 {
	if g.Name != last.Name || since <= 0 || g.Stall.Total < last.Stall.Total {
		return g.Stall.Mean
	}
	return min(float64(g.Stall.Total-last.Stall.Total)/float64(since), 1)
}

// A system is where samples are taken: a root directory that has proc and,
// mostly, sys. Where cgroups are mounted is read once, in a table that is long on some hosts;
// which groups the process is in may change.
type system struct {
	root   fs.FS
	mounts []mountinfo.Mount
}

func newSystem(root fs.FS) (system, error) {
	b, err := readFile(root, "proc/self/mountinfo")
	if err != nil {
		return system{}, fmt.Errorf("read mounts: %w", err)
	}
	table, _ := mountinfo.Parse(b) // as far as it is understood
	mounts := slices.DeleteFunc(table, func(m mountinfo.Mount) bool { return m.Type != "cgroup" && m.Type != "cgroup2" })
	return system{root, slices.Clone(mounts)}, nil
}

// sample returns the machine or the cgroup that has the least to spare.
func (s system) sample() (Group, error) {
	least, err := readMachine(s.root)
	if err != nil {
		return Group{}, fmt.Errorf("read memory of the machine: %w (is /proc mounted?)", err)
	}
	trees, err := s.trees()
	if err != nil {
		return Group{}, fmt.Errorf("read cgroups: %w", err)
	}
	for _, t := range trees {
		g, err := t.tightest(s.root)
		if err != nil {
			return Group{}, fmt.Errorf("read cgroups: %w", err)
		}
		if g.spare() < least.spare() {
			least = g
		}
	}
	return least, nil
}

// readMachine reads what the kernel believes can be had without swapping.
func readMachine(root fs.FS) (Group, error) {
	b, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return Group{}, err
	}
	total, ok := field(b, "MemTotal:")
	available, ok2 := field(b, "MemAvailable:")
	if !ok || !ok2 || total > NoLimit>>10 || available > total {
		return Group{}, fmt.Errorf("proc/meminfo: %w", meta.ErrInvalid)
	}
	stall, err := readStall(root, "proc/pressure/memory")
	return Group{Limit: total << 10, Used: (total - available) << 10, Stall: stall}, err
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

// reserve is left free of a limit: for what others take between two
// samples, this process's own heap among them, and what the kernel needs to work.
func reserve(limit int64) int64 {
	return min(max(limit/16, 32<<20), 1<<30, limit/4)
}
