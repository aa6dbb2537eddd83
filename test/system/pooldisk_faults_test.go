package system_test

import (
	"fmt"
	"strings"
	"testing"

	"rankfs/test/eventually"
)

// A directory of the pool that is gone is done without, as a disk that fails: that is logged, jobs
// begin in memory, what is to last is not committed, and nothing is written to what has its path now.
// No map there is taken for lost: it is read again when the directory is back. So it is the second
// time, too.
func TestADirectoryOfThePoolIsGone(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	n := newNode(t).startPool("--pool-nvme", disk+"/pool:16MiB")
	stage := n.mount + "/shuffle/lasts/s"
	sh(t, `mkdir -p "$1"; cd "$1"; echo 'maps=3 copies=1 ack=durable' >spec
		for m in 0 1 2; do echo "words $m" >.map-00000$m.0; done
		for m in 0 1; do mv .map-00000$m.0 map-00000$m; done`, stage)
	for i, is := range []string{"another directory has its path", "nothing has its path"} {
		sh(t, `mv "$1/pool" "$1/away"`, disk)
		if i == 0 {
			sh(t, `mkdir "$1/pool"`, disk)
		}
		for range 2 {
			if r := command(t, "mv", stage+"/.map-000002.0", stage+"/map-000002"); r.code == 0 || !strings.Contains(r.err, "No space left") {
				t.Errorf("%s, and a map that is to last is committed: %v", is, r)
			}
		}
		if n.logged("commit .map-000002.0", "the directory is gone, or something else is mounted there; bring it back") == 0 {
			t.Errorf("%s, and the log does not say why no map is committed", is)
		}
		if r := command(t, "cat", fmt.Sprintf("%s/map-00000%d", stage, i)); r.code == 0 || !strings.Contains(r.err, "No route to host") {
			t.Errorf("%s, and a map there is read: %v", is, r)
		}
		n.beginJob(fmt.Sprint("gone", i)) // after which the daemon looks at what it has
		if i == 0 {
			if got := sh(t, `ls -A "$1/pool"; rmdir "$1/pool"`, disk); got != "" {
				t.Errorf("in another directory of its path there is %q", got)
			}
		}
		sh(t, `mv "$1/away" "$1/pool"`, disk)
		if got := sh(t, `cat "$1"`, fmt.Sprintf("%s/map-00000%d", stage, i)); got != fmt.Sprintf("words %d\n", i) {
			t.Errorf("it is back, and a map there is %q", got)
		}
	}
	n.loggedOnce("pool-nvme directory suspended", "the directory is gone, or something else is mounted there")
	if n := n.logged("is lost on this node"); n > 0 {
		t.Errorf("the log says of %d maps that they are lost", n)
	}
}

// A directory of the pool that a daemon of the same node has already, which began on a copy of its
// state, is refused to another: it is said what to do, and nothing is mounted. When that daemon has ended
// the next one begins, and has what was committed before; and so it is when that fails in turn.
func TestADirectoryOfThePoolIsInUse(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	options := []string{"--pool-ram", "16MiB", "--pool-nvme", disk + ":64MiB"}
	n := newNode(t).startPool(options...)
	stage := n.mount + "/shuffle/job/s"
	commit := func(i int) {
		sh(t, `echo "words $2" >"$1/.map-00000$2.0"; mv "$1/.map-00000$2.0" "$1/map-00000$2"`, stage, fmt.Sprint(i))
	}
	sh(t, `mkdir -p "$1"; echo 'maps=3 copies=1 ack=durable' >"$1/spec"`, stage)
	commit(0)
	want := "words 0\n"
	for i, how := range []string{"--private", "--background"} {
		n.Kill()
		n.forgetMemory()
		holder := newNode(t)
		sh(t, `cp -a "$1" "$2"`, n.state, holder.state)
		holder.start(options...)
		r := n.refused(append(options, how)...)
		for _, word := range []string{disk, "a rankfs that has the id of this node", "unmount that"} {
			if r.code != 4 || !strings.Contains(r.err, word) {
				t.Errorf("failure %d, %s: %v, want exit 4 and %q", i, how, r, word)
			}
		}
		if left := mountsBelow(n.dir); len(left) > 0 {
			t.Errorf("failure %d, %s: it was refused, and left %v", i, how, left)
		}
		holder.stop()
		holder.forgetMemory()
		n.start(options...)
		if got := sh(t, `cat "$1"/map-*`, stage); got != want {
			t.Errorf("failure %d: %q is there, want %q", i, got, want)
		}
		commit(i + 1)
		want += fmt.Sprintf("words %d\n", i+1)
	}
	if got := sh(t, `cat "$1/part-000000"`, stage); got != want {
		t.Errorf("in the end the part is %q, want %q", got, want)
	}
	sh(t, `rm -r "$1"/shuffle/job`, n.mount)
	eventually.Within(t, waitTime, "no file system of the job is left", func() bool { return len(mountsBelow(n.state)) == 0 })
}

// A disk of the pool that is not mounted when a daemon begins is not taken for one on which no map is left:
// the mount is refused, with what to do, and nothing is made at the mount point, also where a daemon of the
// release before has begun without the disk. Once that is mounted all maps are there; and so it is when it
// fails in turn. Only if a person says so the node begins anew without it.
func TestADiskOfThePoolIsNotMounted(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	disk := newDisk(t, n, 24)
	options, mount := []string{"--pool-ram", "16MiB", "--pool-nvme", disk + ":16MiB"}, func() { sh(t, `mount -o loop "$1.img" "$1"`, disk) }
	n.startPool(options...)
	note, stage := n.state+"/pool/.disk", n.mount+"/shuffle/job/s"
	commit := func(i int) (sum string) {
		return sh(t, `yes "words $2" | head -c 300000 >"$1/.map-00000$2.0"; sha256sum <"$1/.map-00000$2.0"; mv "$1/.map-00000$2.0" "$1/map-00000$2"`, stage, fmt.Sprint(i))
	}
	sh(t, `mkdir -p "$1"; echo 'maps=3 copies=1 ack=durable' >"$1/spec"`, stage)
	want := commit(0)
	unmount := func() {
		n.forgetMemory()
		sh(t, `umount "$1"`, disk)
	}
	refused := func(is string, args ...string) {
		t.Helper()
		below := sh(t, `find "$1" | sort`, disk)
		r := n.refused(append(args, options...)...)
		for _, words := range []string{disk, "mount its disk first", "rm " + note} {
			if r.code != 3 || !strings.Contains(r.err, words) {
				t.Errorf("%s: %v, want exit 3 and %q", is, r, words)
			}
		}
		if left := mountsBelow(n.state); len(left) > 0 {
			t.Errorf("%s: it was refused, and left %v", is, left)
		}
		if left := sh(t, `find "$1" | sort`, disk); left != below {
			t.Errorf("%s: it was refused, and at the mount point there is\n%s, and was\n%s", is, left, below)
		}
	}
	for i, is := range []string{"nothing is at the mount point", "the release before has begun there"} {
		if i == 0 {
			n.stop()
			unmount()
			refused(is, "--private")
		} else {
			n.Kill()
			n.ok("umount", n.mount)
			unmount()
			id := strings.TrimSpace(sh(t, `cat "$1/node"`, n.state))
			sh(t, `mkdir -p "$1/1"; touch "$1/.lock"`, disk+"/pool-"+id)
			refused(is, "--background")
			sh(t, `rm -r "$1"`, disk+"/pool-"+id)
		}
		mount()
		n.start(options...)
		if got := sh(t, `for m in "$1"/map-*; do sha256sum <"$m"; done`, stage); got != want {
			t.Errorf("%s, and when the disk is mounted its maps are %q, want %q", is, got, want)
		}
		want += commit(i + 1)
	}
	if got := sh(t, `head -c 300000 "$1/part-000000" | sha256sum; tail -c 300000 "$1/part-000000" | sha256sum`, stage); !strings.HasPrefix(want, got[:len(got)/2]) || !strings.HasSuffix(want, got[len(got)/2:]) {
		t.Errorf("in the end the part has %q, want of %q the first and the last", got, want)
	}
	if n := n.logged("is lost on this node"); n > 0 {
		t.Errorf("the log says of %d maps that they are lost", n)
	}
	n.stop()
	unmount()
	sh(t, `rm "$1"`, note)
	n.start(options...)
	eventually.Within(t, waitTime, "the maps are given up", func() bool { return n.logged("is lost on this node") == 3 })
	sh(t, `rm -r "$1"/shuffle/job`, n.mount)
	eventually.Within(t, waitTime, "no file system of the job is left", func() bool { return len(mountsBelow(n.state)) == 0 })
	n.stop()
	mount()
	refused("the node has begun anew without it")
}

// forgetMemory takes away what the pool of a daemon that has ended had in memory, as the host's end
// would.
func (n *node) forgetMemory() {
	n.t.Helper()
	sh(n.t, `for m in $(grep -o "$1/pool/[0-9]*" /proc/self/mounts); do umount "$m"; done`, n.state)
}

// A disk on which nothing can be made, or that does not answer, is done without: jobs that begin
// meanwhile are in memory, and of one that is removed nothing is left there in the end.
func TestJobsThatBeginWithoutTheDisk(t *testing.T) {
	t.Parallel()
	n, disk := poolOnADisk(t)
	sh(t, `mkdir -p "$1/shuffle/lasts/s"; cd "$1/shuffle/lasts/s"; echo maps=1 ack=durable >spec
		echo words >.map-000000.0; mv .map-000000.0 map-000000; mount -o remount,ro "$2"`, n.mount, disk)
	n.beginJob("read-only")
	sh(t, `mount -o remount,rw "$1"; fsfreeze -f "$1"`, disk)
	n.beginJob("silent")
	n.beginJob("silent-still")
	sh(t, `rm -r "$1/shuffle/lasts"`, n.mount)
	eventually.Within(t, waitTime, "a job that was removed is left on the disk", func() bool { return n.logged("files of a job of the shuffle pool stay") > 0 })
	sh(t, `fsfreeze -u "$1"`, disk)
	n.beginJob("after")
	eventually.Within(t, waitTime, "nothing of it is left there when the disk is back", func() bool { return len(onDisk(t, disk+"/pool")) == 0 })
}

// A disk that does not answer holds no process for good: a commit of a durable map can be
// interrupted, what is in memory goes on, and the same rename goes well when the disk is back. A
// daemon that starts while the disk takes no writes reads what is there.
func TestADiskOfThePoolIsSilent(t *testing.T) {
	t.Parallel()
	n, disk := poolOnADisk(t)
	got := sh(t, `cd "$1/shuffle"; mkdir -p job/lasts job/s
		echo maps=1 ack=durable >job/lasts/spec; echo maps=2 >job/s/spec
		echo words >job/lasts/.map-000000.0; for i in 0 1; do echo $i >job/s/.map-00000$i.0; done; mv job/s/.map-000000.0 job/s/map-000000
		fsfreeze -f "$2"
		timeout -s INT 2 mv job/lasts/.map-000000.0 job/lasts/map-000000 || echo $?
		mv job/s/.map-000001.0 job/s/map-000001; cat job/s/part-000000
		fsfreeze -u "$2"
		mv job/lasts/.map-000000.0 job/lasts/map-000000; cat job/lasts/part-000000`, n.mount, disk)
	if want := "124\n0\n1\nwords\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	n.Kill()
	sh(t, `fsfreeze -f "$1"`, disk)
	defer tryCommand("fsfreeze", "-u", disk)
	n.start("--pool-ram", "64MiB", "--pool-nvme", disk+"/pool:16MiB")
	if got := sh(t, `cat "$1"/shuffle/job/*/part-000000`, n.mount); got != "words\n0\n1\n" {
		t.Errorf("to a daemon that begins meanwhile it gives %q", got)
	}
	sh(t, `fsfreeze -u "$2"; rm -r "$1/shuffle/job"; while grep -q "$3/pool" /proc/self/mounts; do sleep 0.1; done`, n.mount, disk, n.state)
}

// A daemon starts on a disk that turned read-only while it was down, as a file system does by itself
// after an error, and serves the durable maps there. What is to last is not committed meanwhile, and other
// maps are in memory; no other daemon gets the directory. The same rename goes well when the disk takes
// writes again; and so it is the second time. A disk that the node has not had before is refused.
func TestADiskOfThePoolIsReadOnly(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	disk := newDisk(t, n, 24)
	options := []string{"--pool-ram", "16MiB", "--pool-nvme", disk + ":16MiB"}
	remount := func(as string) { sh(t, `mount -o remount,"$2" "$1"`, disk, as) }
	remount("ro")
	r := n.refused(append(options, "--background")...)
	for _, words := range []string{disk, "read-only file system; have that take writes"} {
		if r.code == 0 || !strings.Contains(r.err, words) {
			t.Errorf("the node begins on it: %v, want %q", r, words)
		}
	}
	remount("rw")
	n.startPool(options...)
	stage := n.mount + "/shuffle/job/s"
	write := func(i int) (sum string) {
		return sh(t, `yes "words $2" | head -c 300000 >"$1/.map-00000$2.0"; sha256sum <"$1/.map-00000$2.0"`, stage, fmt.Sprint(i))
	}
	commit := func(i int) result {
		return command(t, "mv", fmt.Sprintf("%s/.map-00000%d.0", stage, i), fmt.Sprintf("%s/map-00000%d", stage, i))
	}
	sh(t, `mkdir -p "$1"; echo 'maps=3 copies=1 ack=durable' >"$1/spec"`, stage)
	want := write(0)
	if r := commit(0); r.code != 0 {
		t.Fatal(r)
	}
	for i := range 2 {
		if i == 0 {
			n.stop()
		} else {
			n.Kill()
		}
		n.forgetMemory()
		remount("ro")
		n.start(options...)
		has := func(when string) {
			t.Helper()
			if got := sh(t, `for m in "$1"/map-*; do sha256sum <"$m"; done`, stage); got != want {
				t.Errorf("failure %d, and %s its maps are %q, want %q", i, when, got, want)
			}
		}
		has("while the disk is read-only")
		if n.logged("pool-nvme directory suspended", "read-only file system", "what it has is read") != i+1 {
			t.Errorf("failure %d, and the log does not say once that nothing is written there", i)
		}
		other := newNode(t)
		sh(t, `cp -a "$1" "$2"`, n.state, other.state)
		if r := other.refused(append(options, "--background")...); r.code != 4 || !strings.Contains(r.err, "a rankfs that has the id of this node") {
			t.Errorf("failure %d, and another daemon gets the directory: %v", i, r)
		}
		sum := write(i + 1)
		if r := commit(i + 1); r.code == 0 || !strings.Contains(r.err, "No space left") {
			t.Errorf("failure %d, and a map that is to last is committed: %v", i, r)
		}
		if n.logged(fmt.Sprintf("commit .map-00000%d.0", i+1), "the disk of the shuffle pool is full, or has failed") == 0 {
			t.Errorf("failure %d, and the log does not say why no map is committed", i)
		}
		n.beginJob(fmt.Sprint("meanwhile", i))
		remount("rw")
		eventually.Within(t, waitTime, "the disk takes writes again, and the same rename goes well", func() bool { return commit(i+1).code == 0 })
		want += sum
		has("when it takes writes again")
	}
	if n := n.logged("is lost on this node", "job=job "); n > 0 {
		t.Errorf("the log says of %d maps that they are lost", n)
	}
	if got := onDisk(t, disk); len(got) != 2*3 { // each map has a table beside it
		t.Errorf("in the end the disk has %q, want 3 maps", got)
	}
	sh(t, `rm -r "$1"/shuffle/*`, n.mount)
	eventually.Within(t, waitTime, "nothing of the jobs is left", func() bool { return len(mountsBelow(n.state)) == 0 && len(onDisk(t, disk)) == 0 })
}

// A daemon whose directory is to be made on a disk that does not answer does not start, and
// the command that mounts says why, though the daemon cannot end before the disk answers.
func TestAMountOnASilentDisk(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	disk := newDisk(t, n, 24)
	sh(t, `fsfreeze -f "$1"`, disk)
	r := n.refused("--background", "--pool-ram", "64MiB", "--pool-nvme", disk+"/pool:16MiB")
	sh(t, `fsfreeze -u "$1"; flock -w 60 "$2/lock" true`, disk, n.state)
	if r.code == 0 || !strings.Contains(r.err, "the disk of the shuffle pool does not answer") {
		t.Errorf("it says %v", r)
	}
	n.startPool("--pool-nvme", disk+"/pool:16MiB")
}
