package system_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/test/eventually"
)

// A source that is no longer what was indexed: batches that are open or
// mapped stay as they are, every open from then on is ESTALE, the log and
// dataset show say why, and a refresh heals it.
func TestChangedSource(t *testing.T) {
	t.Parallel()
	sources := every(t, 3000)
	n := start(t)
	for kind, s := range sources {
		s.path = dataFile(kind, s)
		backup := filepath.Join(t.TempDir(), "backup")
		must(t, os.WriteFile(backup, read(t, s.path), 0o600))
		changes := map[string]func() error{
			"truncated": func() error { return os.Truncate(s.path, int64(len(read(t, s.path)))/2) },
			"emptied":   func() error { return os.Truncate(s.path, 0) },
			"deleted":   func() error { return os.Remove(s.path) },
			"replaced":  func() error { return replaceFile(s.path, read(t, backup)) },
			"overwritten": func() error { // in place, and no longer or shorter
				return os.WriteFile(s.path, read(t, backup), 0o600)
			},
			"moved": func() error { return os.Rename(s.path, s.path+".moved") },
			"a directory": func() error {
				return firstError(os.Remove(s.path), os.Mkdir(s.path, 0o755))
			},
			"a fifo": func() error { return firstError(os.Remove(s.path), unix.Mkfifo(s.path, 0o600)) },
			"a link": func() error { return firstError(os.Remove(s.path), os.Symlink("/dev/zero", s.path)) },
		}
		for change, f := range changes {
			name := fmt.Sprintf("%s-%s", kind, strings.ReplaceAll(change, " ", "-"))
			t.Run(name, func(t *testing.T) {
				n.create(name, s, "--batch", "100")
				// Of a tree only what is read is looked at, since a million files
				// cannot be asked at each open; then all of it is another one.
				inside := kind == "files" && (change == "truncated" || change == "emptied" || change == "overwritten")
				advice := "index it again with: rankfs dataset refresh " + name
				if kind != "files" && (change == "deleted" || change == "moved") {
					advice = "it is gone; bring it back, or remove the dataset with: rankfs dataset rm " + name
				}
				holdToChange(t, n, name, s, f, inside, advice)
				must(t, os.RemoveAll(s.path))
				_ = os.Remove(s.path + ".moved")
				must(t, os.WriteFile(s.path, read(t, backup), 0o600))
				n.ok("dataset", "refresh", name)
				// In other batches, since the next dataset would have these ready.
				if r := n.readView(t, name+"@step=99"); !sameRecords(r.records(), s.records) {
					t.Error("a refresh brings other bytes")
				}
				n.ok("dataset", "rm", name)
			})
		}
	}
}

func holdToChange(t *testing.T, n *node, name string, s source, change func() error, inside bool, advice string) {
	t.Helper()
	r := newRank(t)
	r.open("mapped", n.batch(name, 0, 0))
	r.do("map", "mapped")
	r.open("open", n.batch(name, 0, 1))
	must(t, change())
	stale, said := []int{0, 1, 20, 29}, 1 // open, ready, in no slab yet
	if inside {
		// First the one with the file that has changed, too far ahead to be ready:
		// a read finds that, and when the kernel asks again a check says it.
		stale, said = []int{29, 0, 1, 20}, 2
	}
	for _, k := range stale {
		if got := r.errno("open", n.batch(name, 0, k)); got != "ESTALE" {
			t.Errorf("open of batch %d: %q, want ESTALE", k, got)
		}
		if got := n.logged("open batch", name+"/", fmt.Sprintf("batch-%06d", k), "changed since it was indexed", advice); got < 1 || got > said {
			t.Errorf("%d lines in the log say why batch %d is not there, want %d", got, k, said)
		}
		said = 1
	}
	if r.do("sum", "mapped").Sum != sumOf(s.all(0, 100)) || r.do("read", "open").Sum != sumOf(s.all(100, 200)) {
		t.Error("other bytes in what was open before")
	}
	if got := r.errno("open", n.batch(name+"@step=50", 0, 3)); got != "ESTALE" {
		t.Errorf("open of a batch of another view: %q, want ESTALE", got)
	}
	if show := n.ok("dataset", "show", name); !strings.Contains(show.out, "stale") || !strings.Contains(strings.Join(strings.Fields(show.out), " "), advice) {
		t.Errorf("dataset show: %v", show)
	}
	for _, list := range [][]string{{"dataset", "ls"}, {"status"}} {
		if got := n.ok(list...); !staleIn(got.out, name) {
			t.Errorf("%v does not say that %s is stale: %v", list, name, got)
		}
	}
	eventually.Within(t, waitTime, "health names the dataset", func() bool {
		return strings.Contains(sh(t, `cat "$1/.rankfs/health"`, n.mount), " stale dataset "+name+" cannot be read: ")
	})
	if got := n.cli("dataset", "verify", name); got.code != 5 {
		t.Errorf("dataset verify: %v, want exit 5", got)
	}
}

// staleIn reports whether a line about a dataset says that it is stale.
func staleIn(text, name string) bool {
	for line := range strings.Lines(text) {
		if strings.Contains(line, name) && strings.Contains(line, "stale") {
			return true
		}
	}
	return false
}

// dataFile is the file of a source that is changed.
func dataFile(kind string, s source) string {
	switch kind {
	case "files":
		return s.path + "/029/02950.txt"
	case "lmdb":
		return s.path + "/data.mdb"
	}
	return s.path
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

func replaceFile(path string, content []byte) error {
	return firstError(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A source that changes to another one: after the refresh its batches are
// under the same names, and what ranks have of the old one stays.
func TestRefreshWhileOpen(t *testing.T) {
	t.Parallel()
	n, s := start(t), newLines(t, 400)
	n.create("d", s, "--batch", "50")
	r := newRank(t)
	r.open("mapped", n.batch("d", 0, 0))
	r.do("map", "mapped")
	r.open("open", n.batch("d", 0, 1))
	var grown source
	grown.records = append(grown.records, []byte("a first line\n"))
	grown.records = append(grown.records, s.records...)
	must(t, os.WriteFile(s.path, grown.all(0, len(grown.records)), 0o600))
	n.ok("dataset", "refresh", "d")
	if r.batch(n.batch("d", 0, 0)) != sumOf(grown.all(0, 50)) || r.batch(n.batch("d", 0, 1)) != sumOf(grown.all(50, 100)) {
		t.Error("an open after the refresh has bytes from before")
	}
	if got := n.readView(t, "d"); !sameRecords(got.records(), grown.records) {
		t.Error("other bytes than the source has now")
	}
	r.do("map", "open")
	if r.do("sum", "mapped").Sum != sumOf(s.all(0, 50)) || r.do("sum", "open").Sum != sumOf(s.all(50, 100)) {
		t.Error("the refresh changed what was open")
	}
}

// A dataset that is removed goes from the tree; what ranks have of it stays.
func TestRemoveWhileOpen(t *testing.T) {
	t.Parallel()
	n, s := start(t), newLines(t, 400)
	n.create("d", s, "--batch", "50")
	n.create("other", s, "--batch", "50")
	r := newRank(t)
	r.open("mapped", n.batch("d", 0, 0))
	r.do("map", "mapped")
	r.open("open", n.batch("d@order=full", 0, 1))
	want := r.do("read", "open").Sum
	n.ok("dataset", "rm", "d")
	for _, path := range []string{n.batch("d", 0, 0), n.batch("d", 0, 5), n.batch("d@order=full", 0, 1), n.path("d"), n.path("d@epoch=1")} {
		if got := r.errno("open", path); got != "ENOENT" {
			t.Errorf("open %s: %q, want ENOENT", path, got)
		}
	}
	if got := list(t, n.path()); len(got) != 1 || got[0] != "other" {
		t.Errorf("the tree lists %q", got)
	}
	r.do("map", "open")
	if r.do("sum", "mapped").Sum != sumOf(s.all(0, 50)) || r.do("sum", "open").Sum != want {
		t.Error("the removal changed what was open")
	}
	if got := n.cli("dataset", "rm", "d"); got.code != 3 {
		t.Errorf("rm of what is not there: %v, want exit 3", got)
	}
	again := newFixed(t, 100, 64) // another dataset by that name
	n.create("d", again, "--batch", "50")
	if r.batch(n.batch("d", 0, 0)) != sumOf(again.all(0, 50)) {
		t.Error("the new dataset has bytes of the old one")
	}
}

// A writer that commits all the time does not touch an epoch that has begun:
// its snapshot is pinned.
func TestLiveWriter(t *testing.T) {
	t.Parallel()
	n, s := start(t), newLMDB(t, words(2000))
	n.create("d", s, "--batch", "50", "--ranks", "2")
	r := newRank(t)
	r.open("mapped", n.batch("d", 0, 0))
	r.do("map", "mapped")
	later := blocks(2000, 300)
	for k := range 20 {
		put(t, s.path, k*100, later[k*100:k*100+100]) // over what is there
		put(t, s.path, 2000+k*100, later[k*100:k*100+100])
		for rank := range 2 {
			from := k*100 + rank*50
			if got := r.batch(n.batch("d", rank, k)); got != sumOf(s.all(from, from+50)) {
				t.Errorf("step %d, rank %d: other bytes beside a writer", k, rank)
			}
		}
	}
	if r.do("sum", "mapped").Sum != sumOf(s.all(0, 50)) {
		t.Error("a mapped batch has other bytes")
	}
	if show := n.ok("dataset", "show", "d"); !strings.Contains(show.out, "ready") {
		t.Errorf("dataset show: %v", show)
	}
	n.ok("dataset", "refresh", "d")
	if got := n.readView(t, "d"); !sameRecords(got.records(), append(append([][]byte{}, later...), later...)) {
		t.Errorf("after a refresh there are %d records that are not those of now", len(got.records()))
	}
}

// Files that claim to be an LMDB: create says what is wrong, and the daemon
// serves on.
func TestHostileLMDB(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	n, good := start(t), newLMDB(t, append(words(500), blocks(20, 9000)...))
	n.create("good", good, "--batch", "52")
	sound := read(t, good.path+"/data.mdb")
	dir := t.TempDir()

	hold := func(name string, content []byte, must ...int) {
		t.Helper()
		path := filepath.Join(dir, "hostile.mdb")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		got := n.cli("dataset", "create", "bad", "--source", "lmdb:"+path)
		switch {
		case got.code == 0 && len(must) == 0: // damage that nothing points to
			if v := n.cli("dataset", "verify", "bad"); v.code != 0 && v.code != 5 {
				t.Errorf("%s: verify: %v", name, v)
			}
			n.ok("dataset", "rm", "bad")
		case got.code != 5 && got.code != 2 || !strings.Contains(got.err, "hostile.mdb"):
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, size := range []int{0, 1, 15, 16, 100, 4095, 4096, 8191, 8192, 12288, len(sound) / 2, len(sound) - 4096, len(sound) - 1} {
		hold(fmt.Sprintf("%d bytes of it", size), sound[:size], 5)
	}
	hold("zeros", make([]byte, 1<<20), 5)
	garbage := make([]byte, 1<<20)
	for i := range garbage {
		garbage[i] = byte(rnd.Uint32())
	}
	hold("garbage", garbage, 5)
	hold("ones", []byte(strings.Repeat("\xff", 1<<16)), 5)
	for i := range 60 {
		bad := append([]byte{}, sound...)
		at := rnd.IntN(len(bad)) / 8 * 8
		if i < 30 { // in the headers of pages
			at = at/4096*4096 + 8*rnd.IntN(8)
		}
		for k := range 8 {
			bad[at+k] = byte(rnd.Uint32())
		}
		if i%3 == 0 {
			copy(bad[at:at+8], "\xff\xff\xff\xff\xff\xff\xff\xff")
		}
		hold(fmt.Sprintf("damage at %d", at), bad)
	}
	for name, f := range map[string]func(path string) error{
		"nothing":     func(path string) error { return nil },
		"a fifo":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a loop":      func(path string) error { return os.Symlink(path, path) },
		"a device":    func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		path := filepath.Join(dir, "odd")
		must(t, os.RemoveAll(path))
		must(t, f(path))
		if got := n.cli("dataset", "create", "bad", "--source", "lmdb:"+path); got.code == 0 || !strings.Contains(got.err, path) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := entries(n.state + "/indexes"); len(got) != 1 {
		t.Errorf("what could not be made left %q", got)
	}
	if got := n.readView(t, "good"); !sameRecords(got.records(), good.records) {
		t.Error("the sound database has other bytes")
	}
}
