package system_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/eventually"
)

// onDisk are the files of committed maps that a daemon has on a disk.
func onDisk(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "pool-*", "*", "*", "maps", "*"))
	must(t, err)
	return names
}

// With a disk, committed maps make way in memory for what is still written: a job may
// have more than memory, its parts are as they should be, and nothing is left on the disk
// after it.
func TestMapsGoToTheDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	n := newNode(t).startPool("--pool-ram", "16MiB", "--pool-nvme", disk+":96MiB")
	stage := n.mount + "/shuffle/job/stage"
	sh(t, `mkdir -p "$1"; echo maps=12 parts=2 > "$1/spec"
for m in $(seq -w 0 11); do
	a="$1/.map-0000$m.0"
	yes "map $m" | head -c 4M > "$a"
	python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("<3Q", 0, 3000000, 4 << 20))' > "$a.idx"
	mv "$a" "$1/map-0000$m"
done`, stage)
	if names := onDisk(t, disk); len(names) < 2*8 {
		t.Errorf("of 48 MiB of maps the disk has %d files", len(names))
	}
	want := sh(t, `for m in $(seq -w 0 11); do yes "map $m" | head -c 4M | tail -c +3000001; done | sha256sum`)
	if got := sh(t, `cat "$1/part-000001" | sha256sum`, stage); got != want {
		t.Errorf("a part of maps on the disk and in memory: %s, want %s", got, want)
	}
	whole := sh(t, `for m in $(seq -w 0 11); do yes "map $m" | head -c 4M; done | sha256sum`)
	if got := sh(t, `cat "$1"/map-* | sha256sum`, stage); got != whole {
		t.Errorf("maps on the disk and in memory: %s, want %s", got, whole)
	}
	if r := command(t, "sh", "-c", `cd "$1"; head -c 4M /dev/zero > scratch/x && ls`, "sh", filepath.Dir(stage)); r.code != 0 {
		t.Errorf("memory has no room: %v", r)
	}
	flipBit(t, onDisk(t, disk)[0], 4000000)
	if r := command(t, "cat", stage+"/part-000001@maps=0-0"); r.code == 0 || r.out != "" {
		t.Errorf("a map that is damaged on the disk: %v", r)
	}
	sh(t, `rm -r "$1"`, filepath.Dir(stage))
	eventually.Within(t, waitTime, "nothing is left on the disk", func() bool { return len(onDisk(t, disk)) == 0 })
}

// A disk has no more than it was given, and memory is full then.
func TestDiskOfThePoolIsFull(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	n := newNode(t).startPool("--pool-ram", "16MiB", "--pool-nvme", disk+":16MiB")
	stage := n.mount + "/shuffle/job/stage"
	r := command(t, "sh", "-c", `mkdir -p "$1"; echo maps=12 > "$1/spec"
for m in $(seq -w 0 11); do
	head -c 4M /dev/urandom > "$1/.map-0000$m.0" && mv "$1/.map-0000$m.0" "$1/map-0000$m" || exit 7
done`, "sh", stage)
	if r.code != 7 || !strings.Contains(r.err, "No space left") {
		t.Errorf("48 MiB into 32: %v", r)
	}
	size := sh(t, `du -cb $(find "$1" -type f) | tail -1 | cut -f 1`, disk)
	var bytes int
	if _, err := fmt.Sscan(size, &bytes); err != nil || bytes > 16<<20 || bytes < 8<<20 {
		t.Errorf("the disk has %s bytes: %v", size, err)
	}
	sh(t, `rm "$1"/.map-* "$1"/map-000000 "$1"/map-000001 "$1"/map-000002`, stage)
	eventually.Within(t, waitTime, "what is removed makes room", func() bool {
		return command(t, "sh", "-c", `head -c 4M /dev/zero > "$1/.map-000011.0" && mv "$1/.map-000011.0" "$1/map-000011"`, "sh", stage).code == 0
	})
}

// With ack=durable a map that is committed outlasts the host's memory; other maps do not,
// and what a daemon finds on the disk is checked.
func TestDurableMaps(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	options := []string{"--pool-ram", "16MiB", "--pool-nvme", disk + ":64MiB"}
	n := newNode(t).startPool(options...)
	job := n.mount + "/shuffle/job"
	const commit = `commit() { echo "$3" > "$1/.map-00000$2.0"; mv "$1/.map-00000$2.0" "$1/map-00000$2"; }
`
	sh(t, commit+`mkdir -p "$1/safe" "$1/weak"
echo 'maps=2 copies=1 ack=durable' > "$1/safe/spec"; echo 'maps=1 copies=1 ack=replicated' > "$1/weak/spec"
commit "$1/safe" 0 one; commit "$1/safe" 1 two; commit "$1/weak" 0 three`, job)
	if got := sh(t, `cat "$1"/*/spec "$1"/*/part-000000`, job); got != "maps=2 parts=1 copies=1 ack=durable\nmaps=1 parts=1 copies=1\none\ntwo\nthree\n" {
		t.Errorf("got %q", got)
	}
	n.Kill()
	n.forgetMemory()
	n.start(options...)
	// The job is not opened before the daemon has looked at what it has: at stages by name.
	eventually.Within(t, waitTime, "the other map is lost", func() bool { return n.logged("is lost on this node", "stage=weak") > 0 })
	if got := sh(t, `cat "$1/safe/part-000000"`, job); got != "one\ntwo\n" {
		t.Errorf("after the memory was lost: %q", got)
	}
	eventually.Within(t, waitTime, "the state says that the other map is lost", func() bool {
		return strings.Contains(sh(t, `cat "$1/weak/state"`, job), "lost       map-000000\n")
	})
	sh(t, `rm -r "$1"; while grep -q "$2/pool" /proc/self/mounts; do sleep 0.1; done`, job, n.state)
}

// Of a disk whose files the kernel does not take, as one that is stacked, maps are read through
// the daemon, which says so; what is in memory is still written without it.
func TestPoolOnAStackedDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk")
	sh(t, `mkdir "$1/disk" "$1/parts"; mount -t tmpfs none "$1/parts"; cd "$1/parts"; mkdir a b c
mount -t overlay -o lowerdir=a,upperdir=b,workdir=c none "$1/disk"`, dir)
	t.Cleanup(func() {
		if r := tryCommand("umount", disk, filepath.Join(dir, "parts")); r.code != 0 {
			t.Errorf("umount: %v", r)
		}
	})
	n := newNode(t).startPool("--pool-ram", "16MiB", "--pool-nvme", disk+":64MiB")
	stage := n.mount + "/shuffle/job/stage"
	got := sh(t, `mkdir -p "$1"; echo 'maps=3 copies=1 ack=durable' > "$1/spec"
for m in 0 1; do echo "map $m" > "$1/.map-00000$m.0"; mv "$1/.map-00000$m.0" "$1/map-00000$m"; done
cat "$1/map-000000" "$1/map-000001" "$1/map-000000"`, stage)
	if got != "map 0\nmap 1\nmap 0\n" {
		t.Errorf("maps on the disk are %q", got)
	}
	if got := sh(t, `exec python3 -c '
import os, signal, sys, threading
pid, name, late = int(sys.argv[2]), sys.argv[1] + "/.map-000002.0", []
def goOn():
    late.append(True)
    os.kill(pid, signal.SIGCONT)
f = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600)  # the first write has the kernel ask for an attribute
timer = threading.Timer(100, goOn)
os.write(f, b"map ")
timer.start()
os.kill(pid, signal.SIGSTOP)
os.write(f, b"2\n")
timer.cancel()
os.kill(pid, signal.SIGCONT)
os.close(f)
os.rename(name, sys.argv[1] + "/map-000002")
print("through the daemon" if late else "without it")' "$@"`, stage, fmt.Sprint(n.PID())); got != "without it\n" {
		t.Errorf("an attempt is written %s", got)
	}
	if logged := n.logged("files of the shuffle pool are read and written through the daemon"); logged != 1 {
		t.Errorf("that is logged %d times", logged)
	}
	if r := n.cli("status"); !strings.Contains(r.out, "files of the shuffle pool go through the daemon") {
		t.Errorf("the status has nothing of it: %v", r)
	}
}

// Without a disk no map is said to last.
func TestDurableWithoutADisk(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1 ack=durable")
	r := command(t, "sh", "-c", `echo x > "$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"`, "sh", stage)
	if r.code == 0 || !strings.Contains(r.err, "No space left") || n.logged("mount with --pool-nvme DIR:SIZE") == 0 {
		t.Errorf("%v", r)
	}
}

// A disk that takes less than it was given is left alone for a while, which is logged once:
// what it has no room for stays in memory, and what is committed is as it should be.
func TestDiskThatTakesLess(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	sh(t, `mount -t tmpfs -o size=6m none "$1"`, disk)
	t.Cleanup(func() {
		if r := tryCommand("umount", disk); r.code != 0 {
			t.Errorf("umount: %v", r)
		}
	})
	n := newNode(t).startPool("--pool-ram", "16MiB", "--pool-nvme", disk+":64MiB")
	stage := n.mount + "/shuffle/job/stage"
	r := command(t, "sh", "-c", `mkdir -p "$1"; echo maps=9 > "$1/spec"
for m in $(seq 0 8); do
	yes "map $m" | head -c 4M > "$1/.map-00000$m.0" && mv "$1/.map-00000$m.0" "$1/map-00000$m" || exit 7
done`, "sh", stage)
	if r.code != 7 || !strings.Contains(r.err, "No space left") {
		t.Errorf("36 MiB into 22: %v", r)
	}
	got := sh(t, `for m in "$1"/map-*; do n=${m##*0}; yes "map ${n:-0}" | head -c 4M | cmp - "$m"; echo "$n"; done | wc -l`, stage)
	if got != "4\n" {
		t.Errorf("%s maps are committed, want 4", got)
	}
	n.loggedOnce("pool-nvme directory suspended")
}

// poolOnADisk is a node whose pool has a disk of its own, which may be frozen.
func poolOnADisk(t *testing.T) (n *node, disk string) {
	t.Helper()
	p := newNode(t)
	disk = newDisk(t, p, 24)
	t.Cleanup(func() { tryCommand("fsfreeze", "-u", disk) })
	return p.startPool("--pool-nvme", disk+"/pool:16MiB"), disk
}

// beginJob has a map committed of a job that is made for it, and reads it.
func (n *node) beginJob(name string) {
	n.t.Helper()
	const job = `
		mkdir -p "$0/shuffle/$1/s"; echo maps=1 >"$0/shuffle/$1/s/spec"; echo words >"$0/shuffle/$1/s/.map-000000.0"
		mv "$0/shuffle/$1/s/.map-000000.0" "$0/shuffle/$1/s/map-000000" && cat "$0/shuffle/$1/s/part-000000"`
	if got := tryCommand("sh", "-c", job, n.mount, name); got.out != "words\n" {
		n.t.Errorf("job %s: %v", name, got)
	}
}
