package system_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/test/eventually"
)

// groupPrefix begins the names of these tests' cgroups.
const groupPrefix = "rankfs-system-test-"

var groups atomic.Int64

// newGroup makes a cgroup that may have so much memory. What an earlier run left,
// if it was killed, is removed.
func newGroup(t *testing.T, limit int64) (dir string, killed func() string) {
	t.Helper()
	root, file, kills := "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"
	if _, err := os.Stat(root); err != nil {
		root, file, kills = "/sys/fs/cgroup", "memory.max", "memory.events"
	}
	left, _ := filepath.Glob(filepath.Join(root, groupPrefix+"*"))
	for _, group := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(group), groupPrefix), "-")
		if _, err := os.Stat("/proc/" + pid); os.IsNotExist(err) {
			_ = unix.Rmdir(group)
		}
	}
	dir = filepath.Join(root, fmt.Sprint(groupPrefix, os.Getpid(), "-", groups.Add(1)))
	must(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { // the kernel takes a moment after the last process has ended
		eventually.Done(t, waitTime, "remove "+dir, func() error { return unix.Rmdir(dir) })
	})
	must(t, os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(limit, 10)), 0))
	return dir, func() string {
		for line := range strings.Lines(string(read(t, filepath.Join(dir, kills)))) {
			if name, n, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" {
				return n
			}
		}
		return "unknown"
	}
}

// inGroup begins the command that starts a program in a cgroup.
func inGroup(dir string) []string {
	return []string{"sh", "-ec", `echo 0 > "$0"/cgroup.procs; exec "$@"`, dir}
}

// A daemon whose budget is twice what its cgroup may have makes do with less,
// says so, and serves a job; it gives up more while others in the group grow.
func TestLessMemoryThanTheBudget(t *testing.T) {
	t.Parallel()
	const limit, budget, batches = 192 << 20, 2 * 192 << 20, 220
	p := newNode(t)
	group, killed := newGroup(t, limit)
	p.Under(inGroup(group)...)
	n, s := p.start("--ram", fmt.Sprint(budget>>20, "MiB")), newFixed(t, batches*batchRecords, recordSize)
	n.create("d", s)
	r := newRank(t)
	epoch := func() {
		for k := range batches {
			if r.batch(n.batch("d", 0, k)) != sumOf(s.all(k*batchRecords, (k+1)*batchRecords)) {
				t.Fatalf("batch %d has other bytes", k)
			}
		}
	}
	ram := func() tierStatus { return n.status().Tiers[0] }
	// At first the cache may have half of the memory that is free, and takes more as it
	// sees, twice a second, that no other process does.
	before := ram()
	for same := 0; same < 3; same++ {
		epoch()
		time.Sleep(time.Second)
		now := ram()
		if now.Used > before.Used {
			same = -1
		}
		before = now
	}
	if !strings.Contains(before.State, "MiB allowed: memory is short: ") || !strings.Contains(before.State, filepath.Base(group)) ||
		before.Budget != budget || before.Used >= limit || before.Used < limit/8 {
		t.Errorf("%+v", before)
	}
	if text := n.ok("status").out; !strings.Contains(text, "MiB allowed  private tmpfs") || !strings.Contains(text, "WARNING: tier ram in private tmpfs: ") {
		t.Errorf("status:\n%s", text)
	}

	// A step of the cache is 6 MiB, and it is not taken back before there is room
	// for two.
	const step = 4 << 20 // of another process in the group; memory on a tmpfs is charged to the process that writes it
	others := newTmpfs(t, p, "64m") + "/file"
	for taken := int64(step); taken <= 10*step; taken += step {
		sh(t, `echo 0 > "$1"/cgroup.procs; head -c "$3" /dev/zero >> "$2"`, group, others, fmt.Sprint(step))
		eventually.True(t, "the cache makes way", func() bool { return ram().Used <= before.Used-taken+4*step })
	}
	epoch()
	if n := killed(); n != "0" {
		t.Errorf("%s were killed", n)
	}
	if c := n.status().Counters; c.OpenErrors != 0 {
		t.Errorf("%d opens failed", c.OpenErrors)
	}
}

// What jobs of the pool have is a part of the budget: that batches have the rest of it is no
// shortage, also where their memory counts as that of the daemon's cgroup.
func TestPoolIsNoShortage(t *testing.T) {
	t.Parallel()
	const limit, budget, pool = 384 << 20, 256, 208 // MiB
	p := newNode(t)
	group, _ := newGroup(t, limit)
	p.Under(inGroup(group)...)
	n := p.startPool("--ram", fmt.Sprint(budget, "MiB"), "--pool-ram", fmt.Sprint(pool, "MiB"))
	sh(t, `echo 0 > "$1"/cgroup.procs; stage="$2/shuffle/job/stage"; mkdir -p "$stage"; echo maps=2 > "$stage/spec"
		head -c "$3" /dev/zero > "$stage/.map-000000.0"; mv "$stage/.map-000000.0" "$stage/map-000000"`, group, n.mount, fmt.Sprint((pool-16)<<20))
	time.Sleep(2 * time.Second) // it looks twice a second
	if ram := n.status().Tiers[0]; ram.State != "ok" {
		t.Errorf("%+v", ram)
	}
}
