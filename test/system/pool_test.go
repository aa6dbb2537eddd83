package system_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rankfs/test/eventually"
)

// pool starts a daemon with a shuffle pool, and makes a stage in it.
func pool(t *testing.T, spec string, options ...string) (n *node, stage string) {
	t.Helper()
	n = newNode(t).startPool(options...)
	stage = n.mount + "/shuffle/job/stage"
	sh(t, `mkdir -p "$1"; echo "$2" > "$1/spec"`, stage, spec)
	return n, stage
}

// How long a name may be, and how large a block is, is the same in the directory of all jobs as
// above it and in a job.
func TestLengthsOfNames(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1")
	for _, dir := range []string{n.mount, n.mount + "/shuffle", stage + "/..", stage, stage + "/../scratch", stage + "/../blob"} {
		if got := sh(t, `stat -f -c '%l %s' "$1"`, dir); got != "255 4096\n" {
			t.Errorf("in %s: %s", dir, got)
		}
	}
}

// startPool starts a daemon with a shuffle pool, of 64 MiB unless told otherwise. All jobs
// are removed before it ends: their files outlive it.
func (p *node) startPool(options ...string) *node {
	p.t.Helper()
	n := p.start(append([]string{"--pool-ram", "64MiB"}, options...)...)
	p.t.Cleanup(func() {
		if left := tryCommand("sh", "-c", `rm -rf "$0"/shuffle/*`, n.mount); left.code != 0 {
			p.t.Errorf("remove what is in the pool: %v", left)
		}
		eventually.Within(p.t, waitTime, "no file system of a job is left", func() bool { return len(mountsBelow(n.state)) == 0 })
	})
	return n
}

// lay writes an attempt of a map, in so many pieces.
const lay = `lay() { # STAGE ATTEMPT PIECE...
	python3 - "$@" <<-'END'
	import struct, sys
	stage, name, *pieces = sys.argv[1:]
	with open(f"{stage}/{name}", "w") as f:
	    f.write("".join(pieces))
	ends = [sum(len(p) for p in pieces[:i]) for i in range(len(pieces) + 1)]
	with open(f"{stage}/{name}.idx", "wb") as f:
	    f.write(struct.pack(f"<{len(ends)}Q", *ends))
	END
}
`

// What map tasks write comes out by parts, in the order of the maps; the first attempt of
// a map wins, whatever comes later.
func TestPool(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=2 parts=3")
	reader := exec.CommandContext(t.Context(), "cat", stage+"/part-000001") // waits for all maps
	var early strings.Builder
	reader.Stdout = &early
	must(t, reader.Start())
	got := sh(t, lay+`
lay "$1" .map-000000.0 aa bbb cc
mv "$1/.map-000000.0" "$1/map-000000"
stat -c '%s %a' "$1/map-000000" "$1/part-000000"
lay "$1" .map-000000.1 X Y Z
mv "$1/.map-000000.1" "$1/map-000000"
cat "$1/map-000000"; echo
getfattr --only-values -n user.rankfs.attempt "$1/map-000000"; echo
lay "$1" .map-000001.7 d "" eeee
mv "$1/.map-000001.7" "$1/map-000001"
ls -A "$1"
for part in 0 1 2; do cat "$1/part-00000$part"; echo; od -A n -t u8 "$1/part-00000$part.idx" | xargs; done
cat "$1/part-000002@maps=1-1"; echo
stat -c %s "$1/part-000002"
`, stage)
	want := `7 400
0 400
aabbbcc
0
map-000000
map-000001
spec
state
aad
0 2 3
bbb
0 3 3
cceeee
0 2 6
eeee
6
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := reader.Wait(); err != nil || early.String() != "bbb" {
		t.Errorf("who opened a part before the last commit read %q, %v", early.String(), err)
	}
	if state := sh(t, `cat "$1/state"`, stage); !strings.Contains(state, "sealed\n") {
		t.Errorf("state: %s", state)
	}
	for script, why := range map[string]string{
		`echo x > "$1/map-000000"`:                                "Operation not permitted",
		`echo x > "$1/part-000000"`:                               "Operation not permitted",
		`echo x > "$1/other"`:                                     "Invalid argument",
		`env printf maps=3 > "$1/spec"`:                           "Device or resource busy",
		`env printf maps=x > "$1/spec"`:                           "Invalid argument",
		`cat "$1/part-000003"`:                                    "No such file",
		`cat "$1/map-000002"`:                                     "No such file",
		`mkdir "$1"`:                                              "File exists",
		`: > "$1/.map-000000.2"; mv -T "$1/.map-000000.2" "$1/x"`: "Operation not permitted",
	} {
		if r := command(t, "sh", "-euc", script, "sh", stage); r.code == 0 || !strings.Contains(r.err, why) {
			t.Errorf("%s: %v", script, r)
		}
	}
	if n.logged("the files of a stage have fixed names") != 1 {
		t.Errorf("the log says nothing of it:\n%s", n.Log())
	}
}

// An open of a part that a stage never has does not wait, once there is an attempt and the
// stage's spec stays.
func TestNoSuchPart(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1 parts=2 copies=1")
	sh(t, `: > "$1/.map-000000.0"`, stage)
	for _, name := range []string{"part-000002", "part-000002.idx", "part-000009@maps=0-0"} {
		for _, tool := range []string{"cat", "stat"} {
			if r := command(t, tool, stage+"/"+name); r.code == 0 || !strings.Contains(r.err, "No such file") {
				t.Errorf("%s %s: %v", tool, name, r)
			}
		}
	}
	if got := sh(t, `stat -c %s "$1/part-000001"`, stage); got != "0\n" {
		t.Errorf("a part of a stage that is open has %s bytes", got)
	}
}

// A reader that has a map open is told its attributes as they are now: a map that was removed, or
// lost, is healed by another attempt.
func TestAttributesOfAHealedMap(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1 copies=1")
	got := sh(t, `attempt() { getfattr --only-values -n user.rankfs.attempt "$1/map-000000"; echo; }
printf text > "$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"; attempt "$1"
exec 3< "$1/map-000000"; rm "$1/map-000000"
printf text > "$1/.map-000000.7"; mv "$1/.map-000000.7" "$1/map-000000"; attempt "$1"; cat <&3`, stage)
	if want := "0\n7\ntext"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An attempt that a process may still write, by a descriptor or by a mapping, is not
// committed, and what is wrong with an attempt is said.
func TestCommitWhileItIsWritten(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1 parts=1")
	for how, hold := range map[string]string{
		"a descriptor": `exec 3>>"$1/.map-000000.0"; ! mv -T "$1/.map-000000.0" "$1/map-000000" 2>&1`,
		"a mapping": `python3 -c '
import mmap, os, subprocess, sys
stage = sys.argv[1]
fd = os.open(stage + "/.map-000000.0", os.O_RDWR)
m = mmap.mmap(fd, 4)
os.close(fd)
r = subprocess.run(["mv", "-T", stage + "/.map-000000.0", stage + "/map-000000"], stderr=subprocess.STDOUT)
sys.exit(r.returncode == 0)' "$1"`,
	} {
		got := sh(t, `printf abcd > "$1/.map-000000.0"; `+hold, stage)
		if !strings.Contains(got, "Device or resource busy") {
			t.Errorf("committed under %s: %s", how, got)
		}
	}
	sh(t, `mv -T "$1/.map-000000.0" "$1/map-000000"; [ "$(cat "$1/part-000000")" = abcd ]`, stage)
	if n.logged("open for writing still") == 0 {
		t.Errorf("the log does not say why:\n%s", n.Log())
	}
}

// Whatever attempts run against each other, each map is in the parts once, and whole.
func TestAttemptsRace(t *testing.T) {
	t.Parallel()
	const maps = 20
	_, stage := pool(t, fmt.Sprintf("maps=%d parts=2", maps))
	sh(t, `cat > "$3" <<-'END'
	import os, struct, sys
	stage, maps, attempt = sys.argv[1], int(sys.argv[2]), sys.argv[3]
	for number in range(maps):
	    name, pieces = f"{stage}/.map-{number:06d}.{attempt}", [f"{number:06d} {attempt} {letter}\n" for letter in "ab"]
	    with open(name, "w") as f:
	        f.write("".join(pieces))
	    with open(name + ".idx", "wb") as f:
	        f.write(struct.pack("<3Q", 0, len(pieces[0]), len("".join(pieces))))
	    os.rename(name, f"{stage}/map-{number:06d}")
END
all=; for attempt in 0 1 2; do python3 "$3" "$1" "$2" $attempt & all="$all $!"; done
for one in $all; do wait $one; done
`, stage, fmt.Sprint(maps), filepath.Join(t.TempDir(), "attempts.py"))
	won := strings.Fields(sh(t, `for m in "$1"/map-*; do getfattr --only-values -n user.rankfs.attempt $m; echo; done`, stage))
	for part, letter := range []string{"a", "b"} {
		lines := strings.Split(strings.TrimSpace(sh(t, `cat "$1/part-00000$2"`, stage, fmt.Sprint(part))), "\n")
		if len(lines) != maps || len(won) != maps {
			t.Fatalf("part %d has %d lines, and %d maps have won", part, len(lines), len(won))
		}
		for i, line := range lines {
			if want := fmt.Sprintf("%06d %s %s", i, won[i], letter); line != want {
				t.Errorf("part %d, map %d: %q, want %q", part, i, line, want)
			}
		}
	}
	if left := sh(t, `ls -A "$1" | grep -c '^\.' || true`, stage); left != "0\n" {
		t.Errorf("attempts are left: %s", left)
	}
}

// What was committed is there after the daemon was killed, and what a program was writing
// meanwhile it goes on to write, and commits.
func TestPoolOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=2 parts=1")
	sh(t, `printf one > "$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"; echo kept > "$1/../scratch/file"; printf t > "$1/.map-000001.0"`, stage)
	n.Kill()
	again := n.startPool()
	got := sh(t, `cat "$1/map-000000" "$1/../scratch/file"; printf wo >> "$1/.map-000001.0"; mv "$1/.map-000001.0" "$1/map-000001"; cat "$1/part-000000"`, stage)
	if got != "onekept\nonetwo" {
		t.Errorf("after a kill: %q", got)
	}
	again.ok("umount", again.mount)
	again.AwaitEnd()
	n.startPool()
	if got := sh(t, `cat "$1/part-000000"`, stage); got != "onetwo" {
		t.Errorf("after an umount: %q", got)
	}
}

// The files of a job in scratch are those of any file system: links are followed within
// it, and lead nowhere else.
func TestScratch(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1")
	scratch := filepath.Dir(stage) + "/scratch"
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	got := sh(t, `cd "$1"
mkdir -p a/b; echo hi > a/b/c; ln a/b/c hard; ln -s a/b/c soft; cat soft; mv a/b/c a/d
cat hard; readlink soft; ! cat soft 2>/dev/null
seq 100000 | sort -n -r -S 1M -T . | head -1
dd if=/dev/zero of=big bs=64k count=32 status=none; stat -c '%s' big; truncate -s 5 big; stat -c '%s %h' big hard
chmod 640 hard; touch -d 2001-02-03 hard; stat -c '%a %y' a/d | cut -c 1-14
rm -r a hard soft; ls; rm big`, scratch)
	if want := "hi\nhi\na/b/c\n100000\n2097152\n5 1\n3 2\n640 2001-02-03\nbig\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r := command(t, "sh", "-c", `cd "$1"; ln -s "$2" out; cat out`, "sh", scratch, secret)
	if r.out != "secret" { // by the kernel, for a user who may read it; never by the daemon
		t.Errorf("a link out of scratch: %v", r)
	}
	sh(t, `rm "$1/out"`, scratch)
}

// Programs that copy files with all that these have go without attributes, which no file has
// that they write.
func TestCopiedWithAttributes(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=2 copies=1")
	from := t.TempDir()
	got := sh(t, `echo text > "$2/file"; mkdir "$2/dir"; cp "$2/file" "$2/dir"; cd "$1/../scratch"
cp -p "$2/file" a; cp -a "$2/dir" .; install -m 640 "$2/file" b; mv "$2/file" c
cp -p a ../blob/.k; mv ../blob/.k ../blob/k; cp -p a "$1/.map-000000.0"; mv c "$1/.map-000001.0"
for map in 000000 000001; do mv "$1/.map-$map.0" "$1/map-$map"; done
cat a b dir/file ../blob/k "$1/part-000000"; stat -c %a b
! setfattr -n user.x -v y a 2>&1; ! setfattr -n user.x -v y . 2>&1`, stage, from)
	if want := "text\ntext\ntext\ntext\ntext\ntext\n640\nsetfattr: a: Operation not supported\nsetfattr: .: Operation not supported\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A job is not removed by rmdir(2) with files that are nowhere else.
func TestRmdirOfAJob(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1")
	job := filepath.Join(filepath.Dir(filepath.Dir(stage)), "files")
	sh(t, `mkdir "$1"`, job)
	for _, name := range []string{"scratch/file", "scratch/.file", "blob/.file"} {
		sh(t, `echo kept > "$1/$2"`, job, name)
		if r := command(t, "rmdir", job); r.code == 0 || !strings.Contains(r.err, "not empty") {
			t.Errorf("rmdir of a job with %s: %v", name, r)
		}
		if got := sh(t, `cat "$1/$2"; rm "$1/$2"`, job, name); got != "kept\n" {
			t.Errorf("%s is %q", name, got)
		}
	}
	sh(t, `rmdir "$1"; mkdir "$1"; rmdir "$1"`, job)
}

// A lane of a stage has what the stage has, and goes with it; no listing shows it.
func TestLanes(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=3")
	got := sh(t, `cd "$1"; printf a > .lane-00/.map-000000.0; cat .map-000000.0 .lane-63/.map-000000.0
printf b > .lane-07/.map-000001.0; printf c > .map-000002.0
mv .lane-00/.map-000000.0 .lane-00/map-000000; mv .lane-07/.map-000001.0 map-000001; mv .lane-63/.map-000002.0 .lane-63/map-000002
printf d > .lane-07/.map-000000.1; mv -f .lane-07/.map-000000.1 .lane-07/map-000000
cat map-000000 .lane-07/map-000000 .lane-01/part-000000; cat part-000000; ls -A . .lane-07
! ls .lane-64 2>/dev/null; ! ls .lane-7 2>/dev/null; ! ls .lane-00/.lane-00 2>/dev/null; ! rmdir .lane-00 2>/dev/null
! mkdir .lane-70 2>/dev/null`, stage)
	files := "map-000000\nmap-000001\nmap-000002\nspec\nstate\n"
	if want := "aa" + "aa" + "abc" + "abc" + ".:\n" + files + "\n.lane-07:\n" + files; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	sh(t, `cd "$1/.lane-05"; rm -r "$1"; ! ls map-000000 2>/dev/null; mkdir "$1"; ! ls "$1/.lane-05/map-000000" 2>/dev/null`, stage)
	if r := n.cli("shuffle", "rm", "job/stage"); r.code != 0 {
		t.Error(r)
	}
	sh(t, `! ls "$1/.lane-05" 2>/dev/null`, stage)
}

// A name that was removed is gone when the command returns, though the kernel knew it, and
// stands for the new job or stage that is made by it then.
func TestNamesThatAreRemoved(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1")
	job := filepath.Join(filepath.Dir(filepath.Dir(stage)), "gone")
	for _, removed := range []string{"gone/s", "gone", "gone/s", "gone"} {
		sh(t, `mkdir -p "$1/s"; echo maps=1 > "$1/s/spec"; : > "$1/scratch/file"; cat "$1/s/spec" "$1/s/state"`, job)
		if r := n.cli("shuffle", "rm", removed); r.code != 0 {
			t.Fatal(r)
		}
		path := filepath.Join(filepath.Dir(job), removed)
		if got := sh(t, `! stat "$1" 2>/dev/null; mkdir "$1"; cd "$1"; /bin/pwd; ls scratch 2>/dev/null || cat spec`, path); got != path+"\n" {
			t.Errorf("%s that was removed and made anew has %q", removed, got)
		}
	}
	for range 10 {
		if got := sh(t, `rm -r "$1"; mkdir -p "$1/s"; cd "$1/s"; /bin/pwd; cat spec`, job); got != job+"/s\n" {
			t.Errorf("a job that was removed by rm -r and made anew has %q", got)
		}
	}
}

// Files have the modes that their makers say, whatever the daemon's umask is; a directory that
// is for one group stays that; times of a link are its own; pipes and sockets are there, and
// devices are not.
func TestScratchModesAndKinds(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1")
	got := sh(t, `cd "$1"; umask 0; : > .map-000000.0; cd ../scratch
umask 002; mkdir dir; : > file; stat -c '%n %a' dir file ../stage/.map-000000.0
chmod 3775 dir; chgrp 12345 dir; : > dir/file; mkdir dir/sub; stat -c '%n %a %g' dir dir/file dir/sub
ln -s file link; touch -h -d 2001-02-03 link; stat -c %y link | cut -c 1-10; stat -c %Y file | grep -vc 981158400
mkfifo pipe; echo by a pipe > pipe & cat "$1/../scratch/pipe"; wait
python3 -c 'import socket
a = socket.socket(socket.AF_UNIX); a.bind("socket"); a.listen()
b = socket.socket(socket.AF_UNIX); b.connect("socket"); b.sendall(b"by a socket"); print(a.accept()[0].recv(99).decode())'
find . -type p -o -type s | sort; rm pipe socket
! mknod device c 1 3 2>/dev/null; ls`, stage)
	want := "dir 775\nfile 664\n../stage/.map-000000.0 666\ndir 3775 12345\ndir/file 664 12345\ndir/sub 2775 12345\n" +
		"2001-02-03\n1\nby a pipe\nby a socket\n./pipe\n./socket\ndir\nfile\nlink\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A file that has no name any more, or whose name another file has, is read, written and
// cut by a process that has it open.
func TestScratchFileWithoutName(t *testing.T) {
	t.Parallel()
	for _, options := range [][]string{nil, {"--no-passthrough"}} {
		_, stage := pool(t, "maps=1", options...)
		got := sh(t, `cd "$1/../scratch"; python3 -c 'import os
for other in False, True:
    f = os.open("file", os.O_RDWR | os.O_CREAT)
    if other:
        os.close(os.open("another", os.O_CREAT))
        os.rename("another", "file")
    else:
        os.unlink("file")
    os.write(f, b"written to it"); os.ftruncate(f, 7); os.posix_fallocate(f, 0, 9)
    s = os.fstat(f); print(os.pread(f, 99, 0), s.st_size)
'; stat -c '%s %a' file`, stage)
		if line := "b'written\\x00\\x00' 9\n"; got != line+line+"0 755\n" {
			t.Errorf("%v: got %q", options, got)
		}
	}
}

// poll(2) finds every file of the pool ready, as any regular file, also when it is asked again. On the
// mount of datasets the kernel asks the daemon nevertheless: a queue is never ready to be written.
func TestPollOfThePool(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1")
	n.create("d", newLines(t, 10), "--ranks", "1", "--batch", "10")
	got := sh(t, `cd "$1"
for new in "$2" ../scratch/file ../blob/.a ../blob/.b .map-000000.0 .map-000000.1; do echo x > $new; done
mv ../blob/.a ../blob/a; mv .map-000000.0 map-000000
python3 -c 'import os, select, sys
def polls(name):
    p = select.poll()
    p.register(os.open(name, os.O_RDONLY), 0x3ff) # all events that there are
    return [events for _ in range(3) for _, events in p.poll(0)]
regular, queue, *files = sys.argv[1:]
for name in files:
    if polls(name) != polls(regular): print(name, polls(name))
print(polls(queue) == 3 * [select.POLLIN | select.POLLRDNORM])
' "$2" "$3" ../scratch/file ../blob/.b ../blob/a .map-000000.1 map-000000 part-000000 part-000000.idx part-000000@maps=0-0 spec state ../hold
`, stage, t.TempDir()+"/regular", n.path("d", "rank-0", "queue"))
	if got != "True\n" {
		t.Errorf("got\n%s", got)
	}
}

// Jobs are their owners' alone, and rm -r removes one.
func TestJobsOfUsers(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1")
	as := func(script string) result {
		cmd := exec.Command("sh", "-c", script, "sh", n.mount+"/shuffle", stage)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return result{string(out), err.Error(), 1}
		}
		return result{out: string(out)}
	}
	for _, script := range []string{`ls "$2"`, `cat "$2/state"`, `mkdir "$2/x"`, `rm -r "$2/.."`, `rmdir "$1/job"`} {
		if r := as(script); r.code == 0 {
			t.Errorf("another user: %s: %v", script, r)
		}
	}
	if r := as(`set -e; mkdir -p "$1/own/s"; echo maps=4 > "$1/own/s/spec"; echo x > "$1/own/s/.map-000003.0"
mv "$1/own/s/.map-000003.0" "$1/own/s/map-000003"; echo y > "$1/own/scratch/y"; stat -c %u "$1/own/scratch/y" "$1/own/s/map-000003"
rm -r "$1/own"; ls "$1"`); r.out != "12345\n12345\njob\n" {
		t.Errorf("an own job: %v", r)
	}
}
