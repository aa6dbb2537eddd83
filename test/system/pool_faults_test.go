package system_test

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/test/clock"
	"rankfs/test/eventually"
)

// ending is a script's function that renames an attempt until it is known what became of
// it, after which the map has to be there.
const ending = `ending() { # STAGE MAP ATTEMPT
	for try in 1 2 3; do
		mv -T "$1/.map-$2.$3" "$1/map-$2" 2>/dev/null && break
	done
	[ -e "$1/map-$2" ] && ! [ -e "$1/.map-$2.$3" ] && ! [ -e "$1/.map-$2.$3.idx" ]
}
`

// A daemon is killed at each step of a commit: while it sums the attempt, before it gives
// it the name of a map, before the cluster has agreed, and before the attempt has lost its
// own name. The same rename once more commits it, or finds it committed.
func TestKilledAtEachStepOfACommit(t *testing.T) {
	t.Parallel()
	for call, when := range map[string]string{
		"fcntl": "it takes the lease", "linkat": "it names the map", "pwrite64": "it writes the log", "unlinkat": "it forgets the attempt",
	} {
		t.Run("before "+when, func(t *testing.T) {
			n, stage := pool(t, "maps=2 parts=2 copies=1")
			sh(t, lay+`lay "$1" .map-000000.0 aa b; mv "$1/.map-000000.0" "$1/map-000000"; lay "$1" .map-000001.0 cc dd`, stage)
			n.killAt(t, call, "mv", "-T", stage+"/.map-000001.0", stage+"/map-000001")
			n.startPool()
			sh(t, ending+`ending "$1" 000001 0`, stage)
			if got := sh(t, `cat "$1/part-000000" "$1/part-000001"; ls -A "$1" | grep -c '^\.' || true`, stage); got != "aaccbdd0\n" {
				t.Errorf("after a kill the parts are %q", got)
			}
		})
	}
}

// killAt runs a command and kills the daemon when it comes to make a system call of that
// name.
func (n *node) killAt(t *testing.T, call string, args ...string) {
	t.Helper()
	tracer := exec.CommandContext(t.Context(), "strace", "-f", "-e", "trace="+call, "-e", "inject="+call+":signal=KILL:when=1", "-p", fmt.Sprint(n.PID()))
	words, err := tracer.StderrPipe()
	must(t, err)
	must(t, tracer.Start())
	lines := bufio.NewScanner(words)
	for lines.Scan() && !strings.Contains(lines.Text(), "attached") {
	}
	cmd := exec.Command(args[0], args[1:]...)
	must(t, cmd.Start())
	go func() {
		for lines.Scan() {
		}
	}()
	n.AwaitEnd() // by the kill, or it is an error
	if err := cmd.Wait(); err == nil {
		t.Error("the command went well, and the daemon was killed before it could")
	}
	tracer.Wait()
}

// A process that opens an attempt to write, or cuts it, while it is renamed, is too late or in time,
// and never changes a map: what its first reader reads it is ever after.
func TestWritersRaceWithCommits(t *testing.T) {
	t.Parallel()
	const maps = 20
	_, stage := pool(t, fmt.Sprintf("maps=%d copies=1", maps))
	got := sh(t, `cat > "$2" <<-'END'
	import errno, os, sys
	stage, maps, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
	if how != "commit":
	    for m in range(maps):
	        name, to = f"{stage}/.map-{m:06d}.0", f"{stage}/map-{m:06d}"
	        while not os.path.exists(to):
	            try:
	                if how == "cut":
	                    os.truncate(name, 10)
	                else:
	                    fd = os.open(name, os.O_WRONLY)
	                    os.pwrite(fd, b"X" * 10, 0)
	                    os.close(fd)
	            except OSError as e:
	                if e.errno not in (errno.ENOENT, errno.EBUSY):
	                    raise
	    sys.exit()
	first = []
	for m in range(maps):
	    name, to = f"{stage}/.map-{m:06d}.0", f"{stage}/map-{m:06d}"
	    with open(name, "w") as f:
	        f.write("a" * 100000)
	    while True:
	        try:
	            os.rename(name, to)
	            break
	        except OSError as e:
	            if e.errno != errno.EBUSY:
	                raise
	    first.append(open(to).read())
	later = [open(f"{stage}/map-{m:06d}").read() for m in range(maps)]
	parts = open(f"{stage}/part-000000").read()
	print(sum(a != b for a, b in zip(first, later)), parts == "".join(first))
	END
	python3 "$2" "$1" $3 write & python3 "$2" "$1" $3 write & python3 "$2" "$1" $3 cut &
	python3 "$2" "$1" $3 commit; wait`, stage, filepath.Join(t.TempDir(), "race.py"), fmt.Sprint(maps))
	if got != "0 True\n" {
		t.Errorf("maps that changed after their commit, and whether the part has them: %s", got)
	}
}

// A process that opens a file to write, renames it, or cuts it, while its directory is put, is too
// late or in time, too: what the first reader of a blob reads it is ever after.
func TestWritersRaceWithPuts(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1")
	got := sh(t, `python3 - "$1/../blob" <<-'END'
	import errno, os, random, sys, threading
	blobs, changed = sys.argv[1], 0
	def write(dir, done):
	    while not done.is_set():
	        name = f"{dir}/{random.randrange(4)}"
	        try:
	            how = random.randrange(8)
	            if how == 0:
	                os.close(os.open(name, os.O_RDONLY | os.O_TRUNC))
	            elif how == 1:
	                os.rename(name, name + "x")
	                os.rename(name + "x", name)
	            else:
	                fd = os.open(name, os.O_RDWR)
	                try:
	                    os.pwrite(fd, os.urandom(8), 0)
	                finally:
	                    os.close(fd)
	        except OSError as e:
	            if e.errno not in (errno.ENOENT, errno.EBUSY):
	                raise
	def read(dir):
	    return {name: open(f"{dir}/{name}", "rb").read() for name in os.listdir(dir)}
	for n in range(60):
	    dir, put, done = f"{blobs}/.{n}", f"{blobs}/{n}", threading.Event()
	    os.mkdir(dir)
	    for i in range(4):
	        open(f"{dir}/{i}", "w").write("as it was")
	    writers = [threading.Thread(target=write, args=(dir, done), daemon=True) for _ in range(2)]
	    for w in writers: w.start()
	    while True:
	        try:
	            os.rename(dir, put)
	            break
	        except OSError as e:
	            if e.errno != errno.EBUSY:
	                raise
	    first = read(put)
	    done.set()
	    for w in writers: w.join()
	    changed += read(put) != first
	print(changed)
	END`, stage)
	if got != "0\n" {
		t.Errorf("directories of blobs that changed after they were put: %s", got)
	}
}

// Who maps an attempt to write keeps it from being committed, however the mapping began,
// and until it ends.
func TestMappingsOverACommit(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1 copies=1")
	got := sh(t, `python3 - "$1" <<-'END'
	import ctypes, errno, mmap, os, sys
	stage = sys.argv[1]
	name, to = stage + "/.map-000000.0", stage + "/map-000000"
	def commit():
	    try:
	        os.rename(name, to)
	        return "committed"
	    except OSError as e:
	        return errno.errorcode[e.errno]
	fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
	os.write(fd, b"a" * 8192)
	whole = mmap.mmap(fd, 8192)
	only = mmap.mmap(fd, 8192, prot=mmap.PROT_READ)
	os.close(fd)
	print(commit())
	whole[:2] = b"bb"
	whole.close()
	print(commit())              # it may be made writable yet
	only.close()
	fd = os.open(name, os.O_RDONLY)
	reader = mmap.mmap(fd, 8192, prot=mmap.PROT_READ)
	os.close(fd)
	print(commit())
	libc = ctypes.CDLL(None, use_errno=True)
	libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
	fd = os.open(to, os.O_RDONLY)
	print(libc.mmap(None, 8192, 3, 1, fd, 0) == ctypes.c_void_p(-1).value, reader[:3], open(to, "rb").read() == b"bb" + b"a" * 8190)
	END`, stage)
	if want := "EBUSY\nEBUSY\ncommitted\nTrue b'bba' True\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Maps and parts without bytes, and all bytes in one part; the parts of some maps, and of
// maps that there are not.
func TestEmptyAndSkewed(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=4 parts=3 copies=1")
	got := sh(t, lay+`
lay "$1" .map-000000.0 "" "" ""
lay "$1" .map-000001.0 "" "$(head -c 3000000 /dev/zero | tr '\0' x | head -c 100000)" ""
lay "$1" .map-000002.0 a "" b
lay "$1" .map-000003.0 "" "" c
for map in 3 2 1 0; do mv "$1/.map-00000$map.0" "$1/map-00000$map"; done
cd "$1"
for part in 0 1 2; do wc -c < part-00000$part; od -A n -t u8 part-00000$part.idx | xargs; done
wc -c < part-000000@maps=7-9; cat part-000000@maps=0-0 part-000000@maps=0-2; echo
wc -c < part-000001@maps=7-9; cat part-000001@maps=0-1 | tr -d x; wc -c < part-000001@maps=1-1; wc -c < map-000000
cat part-000002@maps=9-9 part-000002@maps=2-2 part-000002@maps=3-8 part-000002@maps=2-2; echo`, stage)
	if want := "1\n0 0 0 1 1\n100000\n0 0 100000 100000 100000\n2\n0 0 0 1 2\n0\na\n0\n100000\n0\nbcb\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := sh(t, `mkdir "$1"; echo "maps=1 parts=1 copies=1" > "$1/spec"; printf a > "$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"
cat "$1/part-000000@maps=1-1" "$1/part-000000@maps=0-0"`, stage+"2"); got != "a" {
		t.Errorf("what no map and what map 0 has for a part is %q", got)
	}
}

// The memory of a map is gone with its host. Then its parts are ENODATA, and state names
// it; the same bytes heal it, others are refused.
func TestLostMapIsHealed(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=2 copies=1")
	sh(t, `for map in 0 1; do printf text$map > "$1/.map-00000$map.0"; mv "$1/.map-00000$map.0" "$1/map-00000$map"; done; cat "$1/part-000000"`, stage)
	n.Kill()
	for _, point := range mountsBelow(n.state) {
		must(t, syscall.Unmount(point, syscall.MNT_DETACH))
	}
	n.startPool()
	eventually.Within(t, waitTime, "both maps are lost", func() bool {
		return strings.Contains(sh(t, `cat "$1/state"`, stage), "no copy is left of 2 maps")
	})
	for script, why := range map[string]string{
		`cat "$1/part-000000@maps=0-0"`: "No data available",
		`cat "$1/map-000001"`:           "No such file",
		`printf other > "$1/.map-000001.3"; mv -T "$1/.map-000001.3" "$1/map-000001"`: "Bad message",
	} {
		if r := command(t, "sh", "-euc", script, "sh", stage); r.code == 0 || !strings.Contains(r.err, why) {
			t.Errorf("%s: %v", script, r)
		}
	}
	if got := sh(t, `rm -f "$1"/.map*; printf text1 > "$1/.map-000001.7"; mv -T "$1/.map-000001.7" "$1/map-000001"; ! cat "$1/part-000000" 2>/dev/null
printf text0 > "$1/.map-000000.0"; mv -T "$1/.map-000000.0" "$1/map-000000"; cat "$1/part-000000"`, stage); got != "text0text1" {
		t.Errorf("healed, the part is %q", got)
	}
	if state := sh(t, `cat "$1/state"`, stage); !strings.Contains(state, "sealed\n") {
		t.Errorf("state: %s", state)
	}
}

// What is full says so, in write(2) and in the commit, and goes on once there is room.
func TestFullPool(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1 parts=2 copies=1")
	got := sh(t, lay+`cd "$1/../scratch"
lay "$1" .map-000000.0 aa bbb
dd if=/dev/zero of=big bs=1M 2>&1 | grep -o 'No space left on device'
while head -c 4096 /dev/zero > fill-$(ls | wc -l) 2>/dev/null; do :; done
mv -T "$1/.map-000000.0" "$1/map-000000" 2>&1 | grep -o 'No space left on device'
grep -o 'give --pool-ram a larger SIZE' "$1/state"
cat "$1/.map-000000.0"; echo
rm *; mv -T "$1/.map-000000.0" "$1/map-000000"; cat "$1/part-000001"`, stage)
	if want := "No space left on device\nNo space left on device\ngive --pool-ram a larger SIZE\naabbb\nbbb"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A hole takes memory when its bytes are summed: an attempt with more of them than there is
// room for is too large, as one would be that was written whole.
func TestHolesAreTooLarge(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1 copies=1")
	r := command(t, "sh", "-c", `truncate -s 1T "$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"`, "sh", stage)
	if state := sh(t, `cat "$1/state"`, stage); !strings.Contains(r.err, "No space left on device") || !strings.Contains(state, "holes in it take as much memory of the pool as other bytes") {
		t.Errorf("a commit of holes: %v, and state: %s", r, state)
	}
	got := sh(t, `rm "$1/.map-000000.0"; truncate -s 1M "$1/.map-000000.1"; mv "$1/.map-000000.1" "$1/map-000000"; tr -d '\0' < "$1/part-000000" | wc -c; stat -c %s "$1/part-000000"`, stage)
	if got != "0\n1048576\n" {
		t.Errorf("of 1 MiB of holes: %q", got)
	}
}

// A daemon that has no descriptor left says so, to whom it cannot serve, and serves again
// when some are back.
func TestPoolWithoutDescriptors(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1 copies=1")
	pid := fmt.Sprint(n.PID())
	sh(t, `printf text > "$1/.map-000000.0"`, stage)
	open := len(entries("/proc/" + pid + "/fd"))
	sh(t, `prlimit --pid "$1" --nofile=$2:`, pid, fmt.Sprint(open+20))
	got := sh(t, `python3 - "$1" <<-'END'
	import errno, os, sys
	stage, held, said = sys.argv[1], [], set()
	for i in range(60):
	    try:
	        held.append(os.open(f"{stage}/../scratch/{i}", os.O_RDWR | os.O_CREAT))
	    except OSError as e:
	        said.add(errno.errorcode[e.errno])
	try:
	    os.rename(stage + "/.map-000000.0", stage + "/map-000000")
	    print("committed")
	except OSError as e:
	    print(errno.errorcode[e.errno], *said, len(held) < 60)
	END`, stage)
	if got != "EBUSY EMFILE True\n" {
		t.Errorf("without descriptors: %s", got)
	}
	eventually.Within(t, waitTime, "it serves again", func() bool {
		return tryCommand("sh", "-c", `mv -T "$0/.map-000000.0" "$0/map-000000" && cat "$0/part-000000"`, stage).out == "text"
	})
	if state := sh(t, `cat "$1/state"`, stage); !strings.Contains(state, "too many open files") {
		t.Errorf("the state does not say why a commit was refused:\n%s", state)
	}
}

// A daemon with few descriptors does not keep them all for maps that were read: parts of many
// maps, as they are, merged and by ranges, are read with those that are left.
func TestPoolWithFewDescriptors(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1 copies=1")
	pid := fmt.Sprint(n.PID())
	open := len(entries("/proc/" + pid + "/fd"))
	sh(t, `prlimit --pid "$1" --nofile=$2:`, pid, fmt.Sprint(open+150))
	for _, spec := range []string{"record=line key=1", "record=line key=1 sort=none", "record=line key=1 by=range"} {
		got := sh(t, `
			job=$(mktemp -d "$1/../../jobXXXXXX") && mkdir "$job/s" && cd "$job/s" && echo "maps=300 parts=2 copies=1 $2" >spec
			for i in $(seq -w 0 299); do echo "key-$i" >.map-000$i.0 && mv -T .map-000$i.0 map-000$i || exit; done
			cat part-000000 part-000001 | sort | cksum
			rm -r "$job"`, stage, spec)
		if want := sh(t, `seq -w 0 299 | sed s/^/key-/ | cksum`); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

// A job is removed beside writers that go on: they are told that it is gone, and nothing
// of it is left.
func TestRemovedBesideWriters(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1000 copies=1")
	got := sh(t, `cat > "$2" <<-'END'
	import errno, os, sys, time
	stage, slot = sys.argv[1], sys.argv[2]
	m, gone, end = 0, 0, time.monotonic() + 3 # or a job that is written all the time may never be empty
	while gone < 100 and time.monotonic() < end:
	    m += 1
	    try:
	        name = f"{stage}/.map-{m % 1000:06d}.{slot}"
	        with open(name, "w") as f:
	            f.write("a" * 10000)
	        os.rename(name, f"{stage}/map-{m % 1000:06d}")
	        with open(f"{stage}/../scratch/{slot}", "a") as f:
	            f.write("b")
	    except OSError as e:
	        if e.errno not in (errno.ENOENT, errno.ESTALE):
	            print(slot, e)
	            break
	        gone += 1
	END
	for slot in 0 1 2; do python3 "$2" "$1" $slot & done
	for slot in 0 1 2; do until [ -e "$3/scratch/$slot" ]; do kill -0 $! && sleep 0.02; done; done
	until rm -r "$3" 2>/dev/null; do :; done; wait`, stage, filepath.Join(t.TempDir(), "write.py"), filepath.Dir(stage))
	if got != "" {
		t.Errorf("writers of a job that was removed: %s", got)
	}
	eventually.Within(t, waitTime, "nothing of the job is left", func() bool { return len(mountsBelow(n.state)) == 0 })
	if n.logged("EIO") != 0 {
		t.Errorf("the log:\n%s", n.Log())
	}
}

// A reader that waits for a part, and one that has it open, is killed, or is told so when
// the daemon is; what it has mapped it keeps.
func TestReadersAreKilled(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=2 copies=1")
	sh(t, `printf one > "$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"`, stage)
	killed, waiting := newRank(t), newRank(t)
	for _, r := range []*rank{killed, waiting} {
		r.send(order{Do: "open", Name: "p", Path: stage + "/part-000000"})
		eventually.True(t, "the open waits", func() bool { return waits(r) })
	}
	killed.kill()
	sh(t, `printf two > "$1/.map-000001.0"; mv "$1/.map-000001.0" "$1/map-000001"`, stage)
	if a := waiting.receive(); a.Errno != "" || a.N != 6 {
		t.Fatalf("who waited: %+v", a)
	}
	waiting.do("map", "p")
	want := waiting.do("sum", "p").Sum
	n.Kill()
	if a := waiting.do("sum", "p"); a.Sum != want {
		t.Errorf("what was mapped has other bytes: %+v", a)
	}
	n.startPool()
	if a := waiting.do("sum", "p"); a.Sum != want || newRank(t).batch(stage+"/part-000000") != want {
		t.Errorf("after a restart the part has other bytes: %+v", a)
	}
}

// A clock that jumps ends no job, whether the daemon or a command looks at it, and a daemon that
// knew another time starts again.
func TestJobsOutliveWrongClocks(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1 copies=1 ttl=1h")
	job := filepath.Dir(stage)
	must(t, clock.Jump(n.PID(), 3*365*24*time.Hour))
	if got := sh(t, `cat "$1/hold"; printf x > "$1/scratch/file"; sleep 8; ls "$1"`, job); !strings.Contains(got, "stage") {
		t.Errorf("three years ahead there is %s", got)
	}
	must(t, clock.Jump(n.PID(), 0))
	sh(t, `mkdir "$1"`, job+"2") // by the right time
	n.stop()
	n.startPool()
	if got := sh(t, `cat "$1/scratch/file"`, job); got != "x" {
		t.Errorf("after a restart: %q", got)
	}
}

// A job that is not used goes by itself, where nothing else happens; one that is in use
// stays.
func TestUnusedJobsGo(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1 copies=1 ttl=1s")
	r, used := newRank(t), n.mount+"/shuffle/used"
	sh(t, `mkdir -p "$1/s"; echo "maps=1 ttl=1h" > "$1/s/spec"; : > "$1/scratch/file"`, used)
	r.open("held", used+"/scratch/file")
	sh(t, `echo "maps=1 ttl=1s" > "$1/s/spec"`, used)
	gone := func(job string) func() bool {
		return func() bool { return tryCommand("test", "-e", n.mount+"/shuffle/"+job).code == 1 }
	}
	eventually.Within(t, waitTime, "the job is gone", gone(filepath.Base(filepath.Dir(stage))))
	if gone("used")() {
		t.Error("a job that is in use is gone")
	}
	r.do("close", "held")
	eventually.Within(t, waitTime, "the other is gone too", gone("used"))
	eventually.Within(t, waitTime, "nothing of them is left", func() bool { return len(mountsBelow(n.state)) == 0 })
}
