package pressure

import (
	"fmt"
	"io/fs"
	"slices"

	"rankfs/meta"
	"rankfs/meta/mountinfo"
)

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
	its, err := trees(s.root, s.mounts)
	if err != nil {
		return Group{}, fmt.Errorf("read cgroups: %w", err)
	}
	for _, t := range its {
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
