package system_test

import (
	"fmt"
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

// A path is another thing in another mount namespace: where one node has its mount, another
// has its source. The first reads that through the second, and looks for nothing in its own.
func TestSourceWhereAnotherNodeHasItsMount(t *testing.T) {
	t.Parallel()
	// An address of this process alone, and ports that no connection is given.
	pid := os.Getpid()
	own := fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, pid&255)
	ports := [2]string{own + ":7420", own + ":7421"}
	n := newNode(t).start("--listen", ports[0])
	sh(t, `
		top=$1 rankfs=$2 a=$3 b=$4
		token=$($rankfs --run $top/run token create | tail -n 1)
		mkdir $top/other
		alone sh -euc '
			top=$1 rankfs=$2 a=$3 b=$4 token=$5
			mount -t tmpfs rankfs-test $top/mnt
			echo here >$top/mnt/f
			export RANKFS_TOKEN=$token
			$rankfs --run $top/run2 mount $top/other --background --state $top/state2 --ram 64MiB --join $a --listen $b
			trap "$rankfs --run $top/run2 umount $top/other" EXIT
			timeout 200 $rankfs --run $top/run2 dataset create far --source file:$top/mnt --as files
			for run in $top/run $top/run2; do
				timeout 200 $rankfs --run $run dataset ls | grep -q "^far *ready "
				timeout 200 $rankfs --run $run dataset show far >/dev/null
			done
			[ "$(timeout 200 nsenter -m -t $6 cat $top/mnt/datasets/far/rank-0/batch-000000)" = here ]
		' sh "$top" "$rankfs" "$a" "$b" "$token" "$5"`, n.dir, rankfs, ports[0], ports[1], fmt.Sprint(n.PID()))
	n.ok("dataset", "ls")
}
