package pressure

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"rankfs/meta"
)

var update = flag.Bool("update", false, "write what is read to the golden files")

// treeOf is the file tree of an archive.
func treeOf(t testing.TB, a *txtar.Archive) fstest.MapFS {
	t.Helper()
	tree := fstest.MapFS{}
	for _, f := range a.Files {
		tree[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return tree
}

func read(root fs.FS) (Group, error) {
	s, err := newSystem(root)
	if err != nil {
		return Group{}, err
	}
	return s.sample()
}

// A host of many containers has thousands of mounts, and a sample is taken twice a second: it
// does as much there as on any other.
func TestASampleIsAsShortAmongManyMounts(t *testing.T) {
	a, err := txtar.ParseFile("testdata/service.txtar")
	if err != nil {
		t.Fatal(err)
	}
	allocations := func(more int) float64 {
		root := treeOf(t, a)
		mounts := root["proc/self/mountinfo"]
		mounts.Data = slices.Clip(mounts.Data) // the next file of the archive is behind it
		for i := range more {
			mounts.Data = fmt.Appendf(mounts.Data, "%d 1 0:7 / /run/%d rw - tmpfs tmpfs rw\n", 1000+i, i)
		}
		s, err := newSystem(root)
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(10, func() {
			if _, err := s.sample(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(0), allocations(3000); many > few+10 {
		t.Errorf("a sample allocates %v times among many mounts, and %v times among few", many, few)
	}
}

// What limits a process, in trees as hosts and containers have them.
func TestTrees(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 9 {
		t.Fatalf("%d trees, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			g, err := read(treeOf(t, a))
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("group %q\nlimit %d\nused  %d\nstall %.4f of %v\n", g.Name, g.Limit, g.Used, g.Stall.Mean, g.Stall.Total)
			want := &a.Files[len(a.Files)-1]
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want.Name != "want" || got != string(want.Data) {
				t.Errorf("got\n%swant\n%s", got, want.Data)
			}
		})
	}
}

// A file that says what cannot be is an error, not a limit of zero or none.
func TestNonsense(t *testing.T) {
	for name, text := range map[string]string{
		"proc/meminfo":                 "MemTotal: 5 kB\nMemAvailable: 6 kB\n",
		"sys/fs/cgroup/memory.max":     "-5\n",
		"sys/fs/cgroup/memory.high":    "many\n",
		"sys/fs/cgroup/memory.current": "0x10\n",
	} {
		a, err := txtar.ParseFile("testdata/container.txtar")
		if err != nil {
			t.Fatal(err)
		}
		tree := treeOf(t, a)
		tree[name] = &fstest.MapFile{Data: []byte(text)}
		if g, err := read(tree); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%s says %q: %+v, %v", name, text, g, err)
		}
	}
	if _, err := read(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty root: %v", err)
	}
}

// A kernel is a root that has the same text in every file of one name, in
// whatever group, and a directory under every other name.
type kernel map[string][]byte

func (k kernel) Open(name string) (fs.File, error) {
	if !utf8.ValidString(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if !fs.ValidPath(name) {
		panic("asked for " + name)
	}
	if b, ok := k[path.Base(name)]; ok {
		return fstest.MapFS{"f": {Data: b}}.Open("f")
	}
	return fstest.MapFS{}.Open(".")
}

// Whatever the files say, nothing leads out of the tree, there is a limit, and
// what is allowed is below it.
func FuzzKernel(f *testing.F) {
	for _, name := range []string{"hybrid", "docker", "service", "spaces", "container"} {
		a, err := txtar.ParseFile("testdata/" + name + ".txtar")
		if err != nil {
			f.Fatal(err)
		}
		tree := treeOf(f, a)
		text := func(name string) []byte { return tree["proc/"+name].Data }
		f.Add(text("self/cgroup"), text("self/mountinfo"), text("meminfo"), text("pressure/memory"),
			[]byte("4294967296\n"), []byte("1073741824\n"), []byte("inactive_file 5\ntotal_active_file 7\n"), int64(1<<20))
	}
	f.Fuzz(func(t *testing.T, groups, mounts, meminfo, psi, limit, used, stat []byte, held int64) {
		g, err := read(kernel{
			"cgroup": groups, "mountinfo": mounts, "meminfo": meminfo, "memory": psi, "memory.pressure": psi,
			"memory.max": limit, "memory.high": limit, "memory.limit_in_bytes": limit,
			"memory.current": used, "memory.usage_in_bytes": used, "memory.stat": stat,
		})
		if err != nil {
			return
		}
		s := Sample{Group: g, Held: held}
		if g.Limit < 0 || g.Limit == NoLimit || g.Used < 0 || !(g.Stall.Mean >= 0 && g.Stall.Mean <= 1) || g.Stall.Total < 0 {
			t.Errorf("%+v", g)
		}
		if n := Allowed(s, math.MaxInt64, math.MaxInt64); n < 0 || n > g.Limit {
			t.Errorf("%d allowed of %+v", n, s)
		}
	})
}
