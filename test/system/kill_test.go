package system_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/test/eventually"
)

// Batches of these tests: 256 of them have 1 MiB.
const batchRecords = 256

// SIGKILL of the daemon: what a rank opened it has, mapped or not, touched or
// not. A new daemon takes the mount point over and finds what is on NVMe.
func TestKilledDaemonLeavesMappings(t *testing.T) {
	t.Parallel()
	p, s := newNode(t), newFixed(t, 40*batchRecords, recordSize)
	args := []string{"--ram", "16MiB", "--nvme", p.at + ":256MiB"}
	old := p.start(args...)
	old.createKept("d", s, "--batch", fmt.Sprint(batchRecords))
	want := func(k int) string { return sumOf(s.all(k*batchRecords, (k+1)*batchRecords)) }

	mapped, open, gone := newRank(t), newRank(t), newRank(t)
	mapped.open("a", old.batch("d", 0, 0))
	mapped.do("map", "a")
	mapped.well(order{Do: "byte", Name: "a", Off: 0}) // no other page
	open.open("b", old.batch("d", 0, 1))
	gone.open("c", old.batch("d", 0, 2))
	gone.do("map", "c")
	gone.do("close", "c")
	for k := 3; k < 40; k++ { // batches leave memory for the disk
		open.batch(old.batch("d", 0, k))
	}
	_, _, kept, _ := old.status().tier("nvme")
	if kept == 0 {
		t.Fatal("no batch was kept on nvme")
	}

	old.Kill()
	hold := func(when string) {
		t.Helper()
		if mapped.do("sum", "a").Sum != want(0) || gone.do("sum", "c").Sum != want(2) {
			t.Errorf("%s: a mapped batch has other bytes", when)
		}
		if open.do("read", "b").Sum != want(1) || mapped.do("read", "a").Sum != want(0) {
			t.Errorf("%s: an open batch has other bytes", when)
		}
		open.do("map", "b")
		if open.do("sum", "b").Sum != want(1) {
			t.Errorf("%s: a batch mapped now has other bytes", when)
		}
		open.do("unmap", "b")
	}
	hold("after the kill")
	for _, path := range []string{old.batch("d", 0, 5), old.batch("d", 0, 0), old.path("d@epoch=1"), old.path()} {
		if got := open.errno("open", path); got != "ENOTCONN" {
			t.Errorf("open %s without a daemon: %q, want ENOTCONN", path, got)
		}
	}

	next := p.start(args...)
	hold("with the new daemon")
	if _, _, slabs, _ := next.status().tier("nvme"); slabs < kept-1 { // one may have been half written
		t.Errorf("the new daemon found %d slabs on nvme, the old one had %d", slabs, kept)
	}
	restored := 0
	for k := range 40 {
		before := attribute(t, next.batch("d", 0, k), "tier")
		open.open("d", next.batch("d", 0, k))
		if before == "nvme" && attribute(t, next.batch("d", 0, k), "tier") == "nvme" {
			restored++
		}
		if open.do("read", "d").Sum != want(k) {
			t.Errorf("batch %d has other bytes", k)
		}
		open.do("close", "d")
	}
	if restored == 0 {
		t.Error("no batch was served from what is on nvme")
	}
	hold("after an epoch of the new daemon")
	if c := next.status().Counters; c.BatchReads != 0 {
		t.Errorf("%d READ requests for batches reached the new daemon, want none", c.BatchReads)
	}
}

// attribute is the value of an extended attribute.
func attribute(t testing.TB, path, name string) string {
	t.Helper()
	buf := make([]byte, 256)
	n, err := unix.Getxattr(path, "user.rankfs."+name, buf)
	must(t, err)
	return string(buf[:n])
}

// A stale mount is cleaned up by umount as well.
func TestUmountAfterKill(t *testing.T) {
	t.Parallel()
	n := start(t)
	r := newRank(t)
	n.create("d", newLines(t, 10))
	r.open("a", n.batch("d", 0, 0)) // keeps the dead mount busy
	n.Kill()
	if got := n.cli("status"); got.code != 3 {
		t.Errorf("status without a daemon: %v, want exit 3", got)
	}
	n.ok("umount", n.mount)
	n.clean(nil)
	if left := mountsBelow(n.dir); len(left) != 0 {
		t.Errorf("after umount there are %v", left)
	}
	if got := n.cli("umount", n.mount); got.code != 3 {
		t.Errorf("umount of nothing: %v, want exit 3", got)
	}
}

// A rank maps a batch, closes it, and keeps the mapping while thousands of
// batches come and go through all of the memory.
func TestMappingOutlivesChurn(t *testing.T) {
	t.Parallel()
	const each = 64 // records of a batch, 256 KiB
	n, s := start(t, "--ram", "16MiB"), newFixed(t, 200*each, recordSize)
	n.create("d", s, "--batch", fmt.Sprint(each), "--order", "full")
	first := n.readView(t, "d")
	holder, churn := newRank(t), newRank(t)
	for k := range 8 {
		name := fmt.Sprint(k)
		holder.open(name, n.batch("d", 0, k))
		holder.do("map", name)
		holder.do("close", name)
	}
	hold := func() {
		t.Helper()
		for k := range 8 {
			if holder.do("sum", fmt.Sprint(k)).Sum != sumOf(bytes.Join(first[k].records(), nil)) {
				t.Errorf("batch %d changed under its mapping", k)
			}
		}
	}
	epoch := 0
	goThrough := func() {
		epoch++
		view := fmt.Sprintf("d@epoch=%d", epoch)
		for k := range 200 {
			churn.batch(n.batch(view, 0, k))
		}
	}
	churns := rounds(12, 4)
	for range churns {
		goThrough()
		hold()
	}
	if c := n.status(); c.Counters.Evicted < churns*160 || c.Counters.Recycled < churns*80 {
		t.Errorf("that was no churn: %+v", c.Counters)
	}
	if used, _, _, _ := n.status().tier("ram"); used > 16<<20 {
		t.Errorf("%d bytes are used, want 16 MiB at most", used)
	}
	// What was given up just before its rank had let go of it dies until the next fill looks.
	settles := func(want int64, what string) {
		t.Helper()
		eventually.True(t, what, func() bool {
			for range 2 {
				epoch++
				churn.batch(n.batch(fmt.Sprintf("d@epoch=%d", epoch), 0, 0))
			}
			_, dying, _, _ := n.status().tier("ram")
			return dying == want
		})
	}
	settles(8*each*recordSize, "the bytes of 8 batches are dying, and no others")
	for k := range 8 {
		holder.do("unmap", fmt.Sprint(k))
	}
	goThrough()
	settles(0, "no bytes are dying, as no process maps anything")
}

var stopped = flag.Duration("stopped", 5*time.Second, "how long the daemon of TestStoppedDaemon is stopped")

// A daemon that is stopped for a while: what is mapped is read on, opens
// wait and can be killed, and everything goes on when it does. In a soak that is a minute.
func TestStoppedDaemon(t *testing.T) {
	t.Parallel()
	pause := *stopped
	if testing.Short() {
		pause = time.Second
	}
	n, s := start(t), newFixed(t, 8*batchRecords, recordSize)
	n.create("d", s, "--batch", fmt.Sprint(batchRecords))
	want := func(k int) string { return sumOf(s.all(k*batchRecords, (k+1)*batchRecords)) }
	reader, waiter, victim := newRank(t), newRank(t), newRank(t)
	reader.open("a", n.batch("d", 0, 0))
	reader.do("map", "a")
	reader.open("b", n.batch("d", 0, 1))

	n.Signal(syscall.SIGSTOP)
	// A request that a thread of the daemon took before it stopped cannot be taken back: a
	// process that waits for it cannot even be killed.
	eventually.True(t, "all of the daemon has stopped", n.stopped)
	over := time.After(pause)
	waiter.send(order{Do: "batch", Path: n.batch("d", 0, 7)})
	victim.send(order{Do: "batch", Path: n.batch("d", 0, 6)})
	eventually.True(t, "an open waits for the stopped daemon", func() bool { return waits(waiter) && waits(victim) })
	for stands := true; stands; {
		if reader.do("sum", "a").Sum != want(0) || reader.do("read", "b").Sum != want(1) {
			t.Fatal("other bytes while the daemon is stopped")
		}
		select {
		case <-over:
			stands = false
		case <-time.After(100 * time.Millisecond):
		}
	}
	if !waits(waiter) {
		t.Error("the open did not wait")
	}
	victim.kill() // a process that waits can be killed

	n.Signal(syscall.SIGCONT)
	if a := waiter.receive(); a.Errno != "" || a.Sum != want(7) {
		t.Errorf("after the pause: %+v", a)
	}
	if reader.batch(n.batch("d", 0, 5)) != want(5) {
		t.Error("other bytes after the pause")
	}
	eventually.True(t, "no handle is left of who was killed", func() bool { return n.status().Counters.OpenHandles == 2 })
}

// stopped reports whether every thread of the daemon is.
func (n *node) stopped() bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", n.PID()))
	must(n.t, err)
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err == nil && !strings.Contains(string(text), ") T ") {
			return false
		}
	}
	return true
}

// waits reports whether a rank is asleep in open(2).
func waits(r *rank) bool { return waitsIn(r, unix.SYS_OPENAT) }

// waitsIn reports whether the rank is in a system call.
func waitsIn(r *rank, call int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", r.pid, r.tid))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	var number int
	_, err = fmt.Sscan(string(text), &number)
	return err == nil && number == call
}

// An open that waits for room ends with EINTR when its process is interrupted,
// and no other reader notices.
func TestInterruptedOpen(t *testing.T) {
	t.Parallel()
	// 16 batches fill the budget, and all of them are held.
	n, s := start(t, "--ram", "16MiB"), newFixed(t, 40*batchRecords, recordSize)
	n.create("d", s, "--batch", fmt.Sprint(batchRecords))
	want := func(k int) string { return sumOf(s.all(k*batchRecords, (k+1)*batchRecords)) }
	holder := newRank(t)
	for k := range 16 {
		holder.open(fmt.Sprint(k), n.batch("d", 0, k))
	}
	impatient, patient, killed := newRank(t), newRank(t), newRank(t)
	for _, r := range []*rank{impatient, patient, killed} {
		r.send(order{Do: "batch", Path: n.batch("d", 0, 30)})
		eventually.True(t, "the open waits", func() bool { return waits(r) })
	}
	eventually.True(t, "three opens wait", func() bool { return n.status().Counters.Opens >= 19 })
	must(t, unix.Tgkill(impatient.pid, impatient.tid, unix.SIGINT))
	if a := impatient.receive(); a.Errno != "EINTR" {
		t.Errorf("an interrupted open: %+v, want EINTR", a)
	}
	killed.kill()
	if !waits(patient) {
		t.Fatal("the other open did not go on waiting")
	}
	if holder.do("read", "3").Sum != want(3) {
		t.Error("other bytes in a batch that was open all the time")
	}
	holder.do("close", "3")
	if a := patient.receive(); a.Errno != "" || a.Sum != want(30) {
		t.Errorf("the patient open: %+v", a)
	}
	if impatient.batch(n.batch("d", 0, 30)) != want(30) {
		t.Error("other bytes in the second try")
	}
	for k := range 16 {
		if k != 3 {
			holder.do("close", fmt.Sprint(k))
		}
	}
	if j := n.stalls("d")[0].Total; j.Given != 2 || j.Errors != 0 || !strings.Contains(n.ok("stall", "d").out, " waited, 0 errors, 2 interrupted\n") {
		t.Errorf("stall says %+v", j)
	}
	eventually.True(t, "no handle is left", func() bool { return n.status().Counters.OpenHandles == 0 })
	if n.logged("level=ERROR") != 0 || n.logged("EIO") != 0 {
		t.Error("there are errors in the log")
	}
}
