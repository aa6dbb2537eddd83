package system_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/eventually"
	"rankfs/test/readme"
)

// blobs starts a daemon with a job, and returns the directory of its blobs.
func blobs(t *testing.T) (n *node, dir string) {
	t.Helper()
	n, stage := pool(t, "maps=1")
	return n, filepath.Join(filepath.Dir(stage), "blob")
}

// What is written under a name with a dot is a blob once it is renamed: the last that has
// a name is what is read by it, and those who have another open go on to read that.
func TestBlobs(t *testing.T) {
	t.Parallel()
	n, dir := blobs(t)
	got := sh(t, `cd "$1"
printf one > .k; mv .k k; cat k; echo; stat -c '%s %a' k; ls -A
exec 3< k
printf 'two!' > .other; mv .other k; cat k; echo; cat <&3; echo; stat -c %s k
rm k; ls -A; cat k 2>&1 || true
mkdir -p .d/e .d/empty; printf a > .d/a; printf b > .d/e/b; : > .d/none
mv -T .d d; find . -mindepth 1 | sort; cat d/a d/e/b d/none; echo
printf x > d/.x; printf y > .y; ls -A d; mv d/.x d/x; mv .y d/e/y; cat d/x d/e/y; echo
printf again > .again; mv -T .again d/a; cat d/a; echo
getfattr --only-values -n user.rankfs.copies d/a; echo
rm -r d; ls -A
`, dir)
	want := `one
3 400
k
two!
one
4
cat: k: No such file or directory
./d
./d/a
./d/e
./d/e/b
./d/empty
./d/none
ab
.x
a
e
empty
none
xy
again
1
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	sh(t, `cd "$1"; printf kept > .k; mv .k k; mkdir d; printf kept > .k; mv .k d/k; printf new > .n; mkdir .d; ln -s nowhere .d/link`, dir)
	for script, why := range map[string]string{
		`echo x > new`:               "Invalid argument",
		`echo x > k`:                 "Operation not permitted",
		`mv -T k l`:                  "Operation not permitted",
		`ln .n .m`:                   "Operation not permitted",
		`ln -s k l`:                  "Operation not permitted",
		`ln k l`:                     "not permitted",
		`mkdir d`:                    "File exists",
		`rmdir d`:                    "Directory not empty",
		`mkdir .e; mv -T .e d`:       "File exists",
		`mv -T .n d`:                 "directory",
		`mv -T .d e`:                 "subdirectory of itself", // so mv says invalid argument
		`mv -T .n none/k`:            "No such file",
		`rmdir ../blob`:              "Directory not empty",
		`exec 3>> .n; mv -T .n late`: "Device or resource busy",
		`python3 -c 'import ctypes, os; r = ctypes.CDLL(None, use_errno=True).renameat2(-100, b".n", -100, b"k", 1); assert r, r; print(os.strerror(ctypes.get_errno())); exit(1)' >&2`: "File exists",
	} {
		if r := command(t, "sh", "-euc", `cd "$0"; `+script, dir); r.code == 0 || !strings.Contains(r.err, why) {
			t.Errorf("%s: %v", script, r)
		}
	}
	if got := sh(t, `cd "$1"; cat k d/k .n; rm -r .[a-z]* *; ls -A`, dir); got != "keptkeptnew" {
		t.Errorf("after what was refused: %q", got)
	}
	if n.logged("a blob is put by a rename") == 0 {
		t.Errorf("the log does not say how a blob is put:\n%s", n.Log())
	}
}

// A blob that is mapped stays what it is, and its bytes go once no process has them open and its
// name is that of another.
func TestMappedBlob(t *testing.T) {
	t.Parallel()
	n, dir := blobs(t)
	held := exec.CommandContext(t.Context(), "python3", "-c", `
import mmap, os, sys
dir = sys.argv[1]
def put(b):
    with open(dir + "/.k", "wb") as f:
        f.write(b)
    os.rename(dir + "/.k", dir + "/k")
put(b"1" * 3000000)
with open(dir + "/k", "rb") as f:
    m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
for i in range(5):
    put(b"23456"[i:i+1] * 3000000)
    with open(dir + "/k", "rb") as f:
        assert f.read() == b"23456"[i:i+1] * 3000000, i
assert m[:] == b"1" * 3000000
print("mapped", flush=True)
sys.stdin.read()
assert m[:] == b"1" * 3000000
`, dir)
	in, err := held.StdinPipe()
	must(t, err)
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	must(t, err)
	defer said.Close()
	held.Stdout, held.Stderr = said, said
	out := func() string {
		text, err := os.ReadFile(said.Name())
		must(t, err)
		return string(text)
	}
	must(t, held.Start())
	files := func() string {
		return tryCommand("sh", "-c", `find "$0" -path '*/maps/*' ! -name '*.idx' | wc -l`, n.state+"/pool").out
	}
	eventually.Within(t, waitTime, "the blobs that were replaced are gone", func() bool {
		return strings.Contains(out(), "mapped") && files() == "1\n"
	})
	must(t, in.Close())
	if err := held.Wait(); err != nil {
		t.Errorf("%v: %s", err, out())
	}
	eventually.Within(t, waitTime, "so is their memory", func() bool {
		out := tryCommand("df", "--output=used", "-B1", dir).out
		return strings.Contains(out, "\n") && len(strings.TrimSpace(strings.SplitN(out, "\n", 2)[1])) == len("3000000")
	})
}

// Blobs outlive the daemon, and so does what is written and not put yet.
func TestBlobsOutliveTheDaemon(t *testing.T) {
	t.Parallel()
	n, dir := blobs(t)
	sh(t, `cd "$1"; printf one > .k; mv .k k; mkdir d; printf tw > d/.k`, dir)
	n.Kill()
	n.start("--pool-ram", "64MiB")
	if got := sh(t, `cd "$1"; cat k; printf o >> d/.k; mv d/.k d/k; cat d/k`, dir); got != "onetwo" {
		t.Errorf("after a kill: %q", got)
	}
	sh(t, `rm -r "$1"; while grep -q "$2/pool" /proc/self/mounts; do sleep 0.1; done`, filepath.Dir(dir), n.state)
}

// The lines of the document that put, get and delete blobs, as they stand there.
func TestPoolRecipeForBlobs(t *testing.T) {
	t.Parallel()
	r := poolReader(t)
	r.types("mkdir /mnt/rankfs/shuffle/words")
	if got := r.types(readme.BlockOf(t, poolDoc, "**A put is rename(2), too.**") + "ls -A $B"); got != "the vocabulary\n" {
		t.Errorf("it prints %q", got)
	}
}
