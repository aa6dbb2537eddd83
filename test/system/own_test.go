package system_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A source in the daemon's own mount, or one that has it in it, would have the daemon wait
// for itself. It is refused, whatever leads there, and the daemon lives on as before: it
// answers, is killed, and serves what was registered when it comes again.
func TestSourceInItsOwnMount(t *testing.T) {
	t.Parallel()
	n := newNode(t).start("--pool-ram", "16MiB")
	dir := filepath.Dir(n.mount)
	must(t, os.WriteFile(dir+"/f", []byte("a\nb\n"), 0o644))
	must(t, os.Symlink(n.mount+"/datasets/a/rank-0/batch-000000", dir+"/link"))
	must(t, os.Mkdir(dir+"/data", 0o755))
	must(t, os.WriteFile(dir+"/data/f", []byte("a\n"), 0o644))
	must(t, os.Symlink(dir+"/data", dir+"/now"))
	n.ok("dataset", "create", "a", "--source", "file:"+dir+"/f", "--as", "lines")
	n.ok("dataset", "create", "turns", "--source", "file:"+dir+"/now", "--as", "files")
	refuse := func(says string, args ...string) {
		t.Helper()
		if r := n.cli(args...); r.code != 2 || !strings.Contains(r.err, says) || !strings.Contains(r.err, n.mount) {
			t.Errorf("%q: %v", args, r)
		}
	}
	for source, says := range map[string]string{
		"file:" + dir:     "own mount",
		"lmdb:" + dir:     "own mount",
		"file:" + n.mount: "own mount",
		"file:" + n.mount + "/datasets/a/rank-0/batch-000000": "lies in rankfs's own mount",
		"file:" + dir + "/link":                               "lies in rankfs's own mount",
		"lmdb:" + n.mount + "/shuffle/job/scratch/d":          "lies in rankfs's own mount",
	} {
		if strings.HasPrefix(source, "file:") {
			source += "?as=files"
		}
		refuse(says, "dataset", "create", "b", "--source", source)
	}
	// What leads there only later is no source any more.
	must(t, os.Remove(dir+"/now"))
	must(t, os.Symlink(n.mount+"/datasets", dir+"/now"))
	refuse("lies in rankfs's own mount", "dataset", "refresh", "turns")
	if r := n.cli("dataset", "verify", "turns"); r.code == 0 {
		t.Errorf("verify: %v", r)
	}
	r := newRank(t)
	if got := r.errno("open", n.batch("turns", 0, 0)); got != "ESTALE" {
		t.Errorf("open: %q, want ESTALE", got)
	}
	for range 2 {
		for _, args := range [][]string{{"dataset", "ls"}, {"dataset", "show", "turns"}, {"status"}} {
			n.ok(args...)
		}
		if got := n.readView(t, "a").records(); len(got) != 2 {
			t.Errorf("%d records", len(got))
		}
		n.Kill()
		n.start("--pool-ram", "16MiB")
	}
	n.ok("dataset", "rm", "turns")
}
