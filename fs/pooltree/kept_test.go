package pooltree

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A keptPool has one job, which has a stage with an attempt, a blob, and a file that may become
// one; and a job and a stage that are removed as they are looked up.
type (
	keptPool struct {
		JobNames
		files *os.Root
	}
	keptStages struct{ StageNames }
	kept       struct {
		number uint64
		gone   bool
	}
	keptBlobs struct{ BlobNames }
)

func (p keptPool) Job(_ context.Context, name string) (Job, error) {
	return keptJob(p.files, name == "gone", keptStages{}), nil
}

func keptJob(files *os.Root, gone bool, g StageNames) Job {
	return Job{
		Named: kept{7, gone}, UID: 7, GID: 7, Files: func() (*os.Root, error) { return files, nil },
		StageNames: g, Blobs: Blobs{BlobNames: keptBlobs{}},
	}
}

func (k kept) Number() uint64 { return k.number }
func (k kept) Stands() bool   { return !k.gone }

func (keptStages) Stage(_ context.Context, name string) (Stage, error) {
	return Stage{Named: kept{8, name == "gone"}, Attempts: Attempts{Dir: attemptsDir}}, nil
}

func attemptsDir() (string, error) { return "attempts", nil }

func (keptBlobs) Find(_ context.Context, name string) (Blob, error) {
	return Blob{Name: name, Number: 9}, nil
}

// The kernel asks again for each name that may come to be another thing's on another node, and
// for nothing else: what a job always has, and what never changes of a file, or is changed by
// way of this mount alone, it may keep; and the names of jobs and stages, of which it is told.
func TestWhatTheKernelKeepsOfThePool(t *testing.T) {
	dir := t.TempDir()
	files, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for _, d := range []string{"scratch", "blob", "attempts"} {
		if err := files.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"scratch/file", "blob/.file", "attempts/.map-000000.0"} {
		if err := files.WriteFile(f, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree := New(Config{Pool: Pool{JobNames: keptPool{files: files}}})
	raw := fusefs.NewNodeFS(&rootDir{tree: tree}, &fusefs.Options{})
	for _, tt := range []struct {
		path             []string
		name, attributes time.Duration
	}{
		{[]string{"job"}, attributesStay, attributesStay},
		{[]string{"gone"}, 0, attributesStay},
		{[]string{"job", "hold"}, attributesStay, 0},
		{[]string{"job", "scratch"}, attributesStay, 0},
		{[]string{"job", "scratch", "file"}, scratchTimeout, scratchTimeout},
		{[]string{"job", "blob"}, attributesStay, attributesStay},
		{[]string{"job", "blob", ".file"}, 0, scratchTimeout},
		{[]string{"job", "blob", "key"}, 0, attributesStay},
		{[]string{"job", "stage"}, attributesStay, attributesStay},
		{[]string{"job", "gone"}, 0, attributesStay},
		{[]string{"job", "stage", ".lane-63"}, attributesStay, attributesStay},
		{[]string{"job", "stage", ".map-000000.0"}, 0, scratchTimeout},
	} {
		var out fuse.EntryOut
		for at, name := range tt.path {
			parent := uint64(1)
			if at > 0 {
				parent = out.NodeId
			}
			out = fuse.EntryOut{}
			if status := raw.Lookup(nil, &fuse.InHeader{NodeId: parent}, name, &out); !status.Ok() {
				t.Fatalf("%v: %v", tt.path[:at+1], status)
			}
		}
		if name, attributes := out.EntryTimeout(), out.AttrTimeout(); name != tt.name || attributes != tt.attributes {
			t.Errorf("%v: the name is kept for %v and the attributes for %v, not %v and %v", tt.path, name, attributes, tt.name, tt.attributes)
		}
	}
}

// A named is a job or a stage, until it is gone.
type named struct {
	number uint64
	gone   bool
}

func (n *named) Number() uint64 { return n.number }
func (n *named) Stands() bool   { return !n.gone }

// Of a name that stands for nothing any more the kernel is told, once; not of one that it
// removes itself, unless that was not done and it is gone nevertheless; and not of one that
// stands for another thing by now.
func TestWhichNamesTheKernelIsToldOf(t *testing.T) {
	var names knownNames
	var told []string
	var in fusefs.Inode
	names.init(func(_ *fusefs.Inode, name string) { told = append(told, name) })
	var out fuse.EntryOut
	all := make(map[string]*named)
	for i, name := range []string{"stays", "goes", "removed", "refused", "made anew"} {
		all[name] = &named{number: uint64(i)}
		names.keep(&in, name, all[name], &out)
	}
	says := func(when string, want ...string) {
		t.Helper()
		names.tasks.Wait()
		names.forget()
		if !slices.Equal(told, want) {
			t.Errorf("%s the kernel is told of %q, not of %q", when, told, want)
		}
		told = nil
	}
	says("while all stand")
	all["goes"].gone, all["made anew"].gone = true, true
	names.keep(&in, "made anew", &named{number: 9}, &out)
	says("after two are gone", "goes")
	says("once more")
	err := names.remove(&in, "removed", func() error {
		all["removed"].gone = true
		says("while it removes one")
		return nil
	})
	says("after that")
	refused := errors.New("something is in it")
	if is := names.remove(&in, "refused", func() error { return refused }); err != nil || is != refused {
		t.Error(err, is)
	}
	says("after one was not removed")
	_ = names.remove(&in, "refused", func() error {
		all["refused"].gone = true
		says("while it removes that")
		return refused
	})
	says("after it was gone nevertheless", "refused")
}

// A directory that the kernel forgets and looks up again has each name once.
func TestNamesOfADirectoryThatWasForgotten(t *testing.T) {
	tree := New(Config{Pool: Pool{JobNames: keptPool{}}})
	raw := fusefs.NewNodeFS(&rootDir{tree: tree}, &fusefs.Options{})
	var job, stage fuse.EntryOut
	for range 2 {
		if status := raw.Lookup(nil, &fuse.InHeader{NodeId: 1}, "job", &job); !status.Ok() {
			t.Fatal(status)
		}
		if status := raw.Lookup(nil, &fuse.InHeader{NodeId: job.NodeId}, "stage", &stage); !status.Ok() {
			t.Fatal(status)
		}
		raw.Forget(stage.NodeId, 1)
		raw.Forget(job.NodeId, 1)
	}
	if n := len(tree.names.mu.known); n != 2 {
		t.Errorf("%d names are kept of a job and its stage", n)
	}
}
