package fs

import (
	"context"
	"os"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A keptPool has one job, which has a stage with an attempt, a blob, and a file that may become
// one.
type (
	keptPool struct {
		Pool
		files *os.Root
	}
	keptJob struct {
		PoolJob
		files *os.Root
	}
	keptStage    struct{ PoolStage }
	keptAttempts struct{ PoolAttempts }
	keptBlobs    struct{ PoolBlobs }
)

func (p keptPool) Job(context.Context, string) (PoolJob, error) { return keptJob{files: p.files}, nil }

func (keptJob) Number() uint64                                   { return 7 }
func (keptJob) Owner() (uid, gid uint32)                         { return 7, 7 }
func (j keptJob) Files() (*os.Root, error)                       { return j.files, nil }
func (keptJob) Stage(context.Context, string) (PoolStage, error) { return keptStage{}, nil }
func (keptJob) Blobs() PoolBlobs                                 { return keptBlobs{} }

func (keptStage) Number() uint64         { return 8 }
func (keptStage) Attempts() PoolAttempts { return keptAttempts{} }

func (keptAttempts) Dir() (string, error) { return "attempts", nil }

func (keptBlobs) Find(_ context.Context, name string) (PoolBlob, error) {
	return PoolBlob{Name: name, Number: 9}, nil
}

// The kernel asks again for each name that may come to be another thing's on another node, and
// for nothing else: what a job always has, and what never changes of a file, or is changed by
// way of this mount alone, it may keep.
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
	raw := fusefs.NewNodeFS(&poolRoot{tree: &PoolTree{pool: keptPool{files: files}, tree: &Tree{}}}, &fusefs.Options{})
	for _, tt := range []struct {
		path             []string
		name, attributes time.Duration
	}{
		{[]string{"job"}, 0, attributesStay},
		{[]string{"job", "hold"}, attributesStay, 0},
		{[]string{"job", "scratch"}, attributesStay, 0},
		{[]string{"job", "scratch", "file"}, scratchTimeout, scratchTimeout},
		{[]string{"job", "blob"}, attributesStay, attributesStay},
		{[]string{"job", "blob", ".file"}, 0, scratchTimeout},
		{[]string{"job", "blob", "key"}, 0, attributesStay},
		{[]string{"job", "stage"}, 0, attributesStay},
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
