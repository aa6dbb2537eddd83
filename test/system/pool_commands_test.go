package system_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"rankfs/test/eventually"
)

// A person makes a stage without a number of maps, sees which opens wait for what, seals it, and
// learns why a commit was refused; other users get at nothing of it, and root at all.
func TestPoolCommands(t *testing.T) {
	t.Parallel()
	n, _ := pool(t, "maps=1")
	owner, other := newPerson(t, 12345, 12345), newPerson(t, 12346, 12346)
	says := func(r result, code int, words ...string) {
		t.Helper()
		for _, word := range words {
			if r.code != code || !strings.Contains(r.out+r.err, word) {
				t.Errorf("exit %d: %s%s, want exit %d and %q", r.code, r.out, r.err, code, word)
			}
		}
	}
	stage := n.mount + "/shuffle/words/sums"
	says(owner.rankfs(n, "shuffle", "create", "words/sums", "parts=1", "copies=2"), 0, stage+"\n")
	says(owner.rankfs(n, "shuffle", "create", "words/sums", "parts=1", "copies=2"), 0, stage+"\n")
	says(owner.does("stat", "-c", "%u %g %a", n.mount+"/shuffle/words"), 0, "12345 12345 700\n")
	says(other.rankfs(n, "shuffle", "ls"), 0, "words  12345")
	for _, verb := range []string{"show", "seal", "reset", "rm"} {
		says(other.rankfs(n, "shuffle", verb, "words/sums"), 7, "is user 12345's; ask them, or root")
	}
	says(other.rankfs(n, "shuffle", "create", "words/other"), 7, "is user 12345's")
	says(other.rankfs(n, "shuffle", "quota", "words", "1GiB"), 7, "is user 12345's")
	says(owner.rankfs(n, "shuffle", "quota", "words", "1GiB"), 0, "words may have 1.0 GiB, all copies counted\n")
	says(owner.rankfs(n, "shuffle", "show", "words"), 0, "of 1.0 GiB, all copies counted\n")
	says(n.cli("shuffle", "quota", "words", "none"), 0, "words has no quota\n")
	says(owner.rankfs(n, "shuffle", "create", "words/blob", "parts=2"), 4, "blob of job words exists already, as in every job")
	says(owner.rankfs(n, "shuffle", "create", "refused/sums", "maps=none"), 2, "maps=none in spec is not valid")
	says(owner.rankfs(n, "shuffle", "create", "refused/sums", "record=line", "key=1-4", "sep=,"), 2, "write key=N for field N, or leave sep= out")
	says(owner.rankfs(n, "shuffle", "create", "refused/a/b"), 2, `name "a/b" is not valid`)
	says(owner.rankfs(n, "shuffle", "create", "words/sums", "parts=1", "--quota", "2GiB"), 4, "give it another quota with: rankfs shuffle quota words SIZE")
	for _, verb := range []string{"create", "show", "seal", "reset", "rm"} {
		for _, name := range []string{"words/", stage} {
			says(owner.rankfs(n, "shuffle", verb, name), 2, fmt.Sprintf("stage %q of the shuffle pool is not valid: write JOB/STAGE", name))
		}
	}
	says(owner.rankfs(n, "shuffle", "show", "words", "--mount", n.mount+"/shuffle"), 0, "owner  12345")
	says(owner.rankfs(n, "shuffle", "show", "refused"), 3, "job refused of the shuffle pool does not exist")
	says(owner.rankfs(n, "shuffle", "show", "refused/sums"), 3, "see which jobs there are with: rankfs shuffle ls")
	says(owner.rankfs(n, "shuffle", "show", "words/none"), 3, "see the stages of a job with: rankfs shuffle show words")
	says(other.rankfs(n, "shuffle", "rm", "words"), 7, "is user 12345's")

	reader := exec.CommandContext(t.Context(), "cat", stage+"/part-000000")
	var read strings.Builder
	reader.Stdout = &read
	must(t, reader.Start())
	eventually.Within(t, waitTime, "an open waits for the part", func() bool {
		r := owner.rankfs(n, "stall", "words/sums")
		return strings.Contains(r.out, "part-000000") && strings.Contains(r.out, fmt.Sprint(reader.Process.Pid)) &&
			strings.Contains(r.out, "cat") && strings.Contains(r.out, "rankfs shuffle seal words/sums") &&
			strings.Contains(owner.does("cat", stage+"/state").out, "after its last use; it is in use on ")
	})
	says(n.cli("status"), 0, "1 open of parts here", "jobs     2: 2 stages")
	commit := `printf "$2" > "$1/.map-00000$2.0"; mv -T "$1/.map-00000$2.0" "$1/map-00000$2"`
	for _, number := range []string{"0", "2"} {
		says(owner.does("sh", "-euc", commit, "sh", stage, number), 0, "")
	}
	says(owner.rankfs(n, "shuffle", "seal", "words/sums"), 0, "words/sums is sealed: 2 maps, 2 B\n")
	if err := reader.Wait(); err != nil || read.String() != "02" {
		t.Errorf("who waited for the part read %q, %v", read.String(), err)
	}
	says(owner.does("sh", "-euc", commit, "sh", stage, "1"), 1, "Device or resource busy")
	var text result
	eventually.Within(t, waitTime, "who looks at the state has the job in use", func() bool {
		text = owner.does("cat", stage+"/state")
		return strings.Contains(text.out, "it is in use on ")
	})
	says(text, 0, "state      sealed\n", "missing    0 copies\n", "parts      000000 2\n", "refused    commit .map-000001.0 at ", "it is sealed; for other maps begin it anew: rankfs shuffle reset words/sums\n", "goes       24h after its last use; it is in use on ")
	says(n.cli("shuffle", "show", "words/sums"), 0, strings.Split(text.out, "\n")[0], "copies: 1 of each map are wanted", "up        2    2 B\n")
	says(n.cli("shuffle", "show", "words"), 0, "owner  12345", "sums   sealed     2    2 B  ")
	eventually.Within(t, waitTime, "the table below /.rankfs has the job", func() bool {
		return strings.Contains(sh(t, `grep ^words "$1/.rankfs/shuffle" | xargs`, n.mount), "words 12345 1 2 2 0 0 0 ")
	})
	says(owner.rankfs(n, "shuffle", "rm", "words/sums"), 0, "words/sums is removed")
	says(owner.does("ls", n.mount+"/shuffle/words"), 0, "hold\nscratch\n")
	says(n.cli("shuffle", "rm", "words"), 0, "words is removed")
	says(owner.does("ls", n.mount+"/shuffle"), 0, "job\n")
	says(owner.rankfs(n, "shuffle", "show", "words"), 3, "rankfs shuffle ls")
}

// After a reset a stage has other maps, and no reader has some bytes of these and some of
// those before: what was opened before keeps its bytes, and is stale to an open by its
// descriptor.
func TestReset(t *testing.T) {
	t.Parallel()
	for _, option := range []string{"", "--no-passthrough"} {
		t.Run(option, func(t *testing.T) { testReset(t, strings.Fields(option)...) })
	}
}

func testReset(t *testing.T, options ...string) {
	n, stage := pool(t, "maps=2 parts=2", options...)
	r := command(t, "python3", "-c", `
import errno, mmap, os, struct, subprocess, sys
rankfs, run, stage, passes = sys.argv[1:]
def run_maps(pieces):
    for number in range(2):
        name = f"{stage}/.map-{number:06d}.0"
        with open(name, "w") as f:
            f.write("".join(pieces))
        with open(name + ".idx", "wb") as f:
            f.write(struct.pack("<3Q", 0, len(pieces[0]), len(pieces[0] + pieces[1])))
        os.rename(name, f"{stage}/map-{number:06d}")
def fails(what, call):
    try:
        call()
    except OSError as e:
        if e.errno == errno.ESTALE:
            return
        raise
    sys.exit(f"{what} is not stale")
run_maps(["a" * 5000, "b" * 5000])
names = [f"{stage}/part-000001", f"{stage}/part-000001@maps=0-1", f"{stage}/map-000000"]
before = ["b" * 10000, "b" * 10000, "a" * 5000 + "b" * 5000]
after = ["d" * 10000, "d" * 10000, "c" * 5000 + "d" * 5000]
old = [open(name) for name in names]
mapped = [mmap.mmap(f.fileno(), 10000, access=mmap.ACCESS_READ) for f in old]
for f, m, want in zip(old, mapped, before):
    assert os.pread(f.fileno(), 20000, 0).decode() == want and m[:].decode() == want
subprocess.run([rankfs, "--run", run, "shuffle", "reset", os.sep.join(stage.split(os.sep)[-2:])], check=True, stdout=subprocess.DEVNULL)
assert sorted(os.listdir(stage)) == ["spec", "state"], os.listdir(stage)
fails("fstat", lambda: os.fstat(old[0].fileno()))
for f in old:
    fails("open", lambda: os.open(f"/proc/self/fd/{f.fileno()}", os.O_RDONLY))
run_maps(["c" * 5000, "d" * 5000])
for name, f, m, was, want in zip(names, old, mapped, before, after):
    assert open(name).read() == want, (name, open(name).read()[:9])
    with open(name) as now:
        assert mmap.mmap(now.fileno(), 10000, access=mmap.ACCESS_READ)[:].decode() == want, name
    assert m[:].decode() == was, (name, m[:9])
    try: # by the kernel, which has the bytes, or by the daemon, which refuses
        assert os.pread(f.fileno(), 20000, 0).decode() == was, name
    except OSError as e:
        assert e.errno == errno.ESTALE and passes != "true", (name, e)
    assert open(name).read() == want, name
print("resets" in open(stage + "/state").read())
`, rankfs, n.run, stage, fmt.Sprint(len(options) == 0))
	if r.code != 0 || r.out != "True\n" {
		t.Errorf("%v", r)
	}
}
