package system_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/test/eventually"
)

// A slowFile is a file on a disk that reads one thing after the other, at so
// many bytes a second, as far as it is let. The kernel keeps nothing of it.
type slowFile struct {
	fusefs.Inode
	data []byte
	rate float64
	disk sync.Mutex
	gate struct {
		sync.Mutex
		moved sync.Cond
		shut  int // nothing beyond this is read; none if 0
	}
}

// shut has reads beyond so many bytes wait until there are more, or, with 0, no end.
func (f *slowFile) shut(at int) {
	f.gate.Lock()
	defer f.gate.Unlock()
	f.gate.shut = at
	f.gate.moved.Broadcast()
}

func (f *slowFile) await(end int64) {
	f.gate.Lock()
	defer f.gate.Unlock()
	for f.gate.shut > 0 && end > int64(f.gate.shut) {
		f.gate.moved.Wait()
	}
}

func (f *slowFile) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size, out.Mtime, out.Ctime = 0o444, uint64(len(f.data)), 1, 1
	return 0
}

func (f *slowFile) Open(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (f *slowFile) Read(_ context.Context, _ fusefs.FileHandle, dst []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	at := min(off, int64(len(f.data)))
	part := f.data[at:min(at+int64(len(dst)), int64(len(f.data)))]
	f.await(at + int64(len(part)))
	f.disk.Lock()
	defer f.disk.Unlock()
	time.Sleep(time.Duration(float64(len(part)) / f.rate * float64(time.Second)))
	return fuse.ReadResultData(part), 0
}

// newSlow is a source of so many records that gives 16 MiB a second. It is
// mounted by this process, which never looks at it.
func newSlow(t testing.TB, p *node, n int) (source, *slowFile) {
	t.Helper()
	s := source{records: blocks(n, recordSize)}
	dir := filepath.Join(p.dir, "slow")
	must(t, os.Mkdir(dir, 0o755))
	file := &slowFile{data: bytes.Join(s.records, nil), rate: 16 << 20}
	file.gate.moved.L = &file.gate
	tree := &fusefs.Inode{}
	server, err := fusefs.Mount(dir, tree, &fusefs.Options{
		OnAdd: func(ctx context.Context) {
			tree.AddChild("data", tree.NewPersistentInode(ctx, file, fusefs.StableAttr{Mode: syscall.S_IFREG}), false)
		},
		MountOptions: fuse.MountOptions{FsName: "slow", Name: "slow", DirectMount: true},
	})
	must(t, err)
	t.Cleanup(func() {
		file.shut(0)
		if err := server.Unmount(); err != nil {
			t.Error(err)
			tryCommand("umount", "-l", dir)
		}
	})
	s.path = filepath.Join(dir, "data")
	s.uri = fmt.Sprintf("file:%s?as=fixed:%d", s.path, recordSize)
	return s, file
}

// A stalledJob is what rankfs stall says of one.
type stalledJob struct {
	View    string
	Waiting int
	Advice  string
	Share   float64 `json:"stall"`
	Total   struct {
		Opens   int
		Ready   int `json:"opens_ready"`
		Waited  int `json:"opens_waited"`
		Errors  int `json:"open_errors"`
		Given   int `json:"opens_interrupted"`
		Bytes   int64
		Rank    float64            `json:"rank_seconds"`
		Stalled float64            `json:"stalled_seconds"`
		Waits   map[string]float64 `json:"waits"`
	}
	Ranks []struct {
		Rank, Opens int
		Stalled     float64 `json:"stalled_seconds"`
	}
}

func (n *node) stalls(name string) (jobs []stalledJob) {
	n.t.Helper()
	must(n.t, json.Unmarshal([]byte(n.ok("--json", "stall", name, "--ranks").out), &jobs))
	return jobs
}

// Two ranks that do nothing but read a source that has no batch before both wait for it:
// they wait, it is the source that they wait for, the causes come to what status says, and
// rankfs stall tells so.
func TestStallsOfASlowSource(t *testing.T) {
	t.Parallel()
	const each, steps = 128, 12 // half a MiB, and so often
	p := newNode(t)
	s, file := newSlow(t, p, 2*each*steps)
	n := p.start()
	n.create("d", s, "--batch", fmt.Sprint(each), "--ranks", "2")
	file.shut(1)
	defer file.shut(0)
	ranks := []*rank{newRank(t), newRank(t)}
	for k := range steps {
		for i, r := range ranks {
			r.send(order{Do: "batch", Path: n.batch("d@epoch="+fmt.Sprint(k%2), i, k)})
		}
		eventually.True(t, "both wait", func() bool {
			jobs := n.stalls("d")
			return len(jobs) == 1 && jobs[0].Waiting == len(ranks)
		})
		file.shut(2 * (k + 1) * each * recordSize)
		for i, r := range ranks {
			a := r.receive()
			must(t, a.err())
			if from := (2*k + i) * each; a.Sum != sumOf(s.all(from, from+each)) {
				t.Errorf("rank %d, batch %d has other bytes", i, k)
			}
		}
	}

	jobs := n.stalls("d@epoch=9")
	if len(jobs) != 1 || jobs[0].View != "d" || len(jobs[0].Ranks) != 2 {
		t.Fatalf("jobs %+v, want one of two ranks", jobs)
	}
	j, opens := jobs[0], 2*steps
	if a := j.Total; a.Opens != opens || a.Waited != opens || a.Errors != 0 || a.Bytes != int64(opens*each*recordSize) {
		t.Errorf("%+v, want %d opens, each after a wait", a, opens)
	}
	sum, worst := 0.0, j.worst()
	for _, seconds := range j.Total.Waits {
		sum += seconds
	}
	if worst != "source" || math.Abs(sum-j.Total.Stalled) > sum/20 || math.Abs(j.Share-j.Total.Stalled/j.Total.Rank) > 0.01 || j.Share > 1 {
		t.Errorf("%+v: waits come to %v, mostly for %s", j, sum, worst)
	}
	if math.Abs(j.Ranks[0].Stalled+j.Ranks[1].Stalled-j.Total.Stalled) > 1e-6 || j.Ranks[0].Opens != steps || j.Ranks[1].Opens != steps {
		t.Errorf("the ranks %+v do not come to the job's %v s", j.Ranks, j.Total.Stalled)
	}
	if !strings.HasPrefix(j.Advice, "the source gives ") {
		t.Errorf("advice: %s", j.Advice)
	}
	var st struct {
		Counters struct {
			Wait  float64 `json:"wait_seconds"`
			Waits map[string]float64
		}
	}
	must(t, json.Unmarshal([]byte(n.ok("--json", "status").out), &st))
	for _, seconds := range st.Counters.Waits {
		st.Counters.Wait -= seconds
		sum -= seconds
	}
	if math.Abs(st.Counters.Wait) > 1e-6 || math.Abs(sum) > 1e-6 {
		t.Errorf("by status the causes are %v s from the waits, and %v from the job's", st.Counters.Wait, sum)
	}
	if out := n.ok("stats", "--once", "--interval", "10ms").out; !strings.Contains(out, "\nd ") || !strings.Contains(out, "source") {
		t.Errorf("stats:\n%s", out)
	}
}

// A rank that waits is seen while it waits.
func TestStallUnderWay(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	s, file := newSlow(t, p, 512)
	n := p.start()
	n.create("d", s)
	file.disk.Lock() // it hangs
	heal := sync.OnceFunc(file.disk.Unlock)
	defer heal()
	r := newRank(t)
	r.send(order{Do: "batch", Path: n.batch("d", 0, 0)})
	eventually.True(t, "an open that waits for the source is seen", func() bool {
		jobs := n.stalls("d")
		return len(jobs) == 1 && jobs[0].Waiting == 1 && jobs[0].Total.Opens == 0 && jobs[0].Total.Waits["source"] > 0 && jobs[0].Share > 0
	})
	heal()
	must(t, r.receive().err())
	if j := n.stalls("d")[0]; j.Waiting != 0 || j.Total.Waited != 1 || j.Total.Opens != 1 {
		t.Errorf("afterwards: %+v", j)
	}
}

// worst is what most of a job's waits are for.
func (j stalledJob) worst() (cause string) {
	for c, seconds := range j.Total.Waits {
		if seconds > j.Total.Waits[cause] {
			cause = c
		}
	}
	return cause
}

// advises awaits that the one job of d waits for a cause, and that rankfs stall says
// so.
func (n *node) advises(cause, advice string) {
	n.t.Helper()
	var last stalledJob
	defer func() {
		if n.t.Failed() {
			n.t.Logf("%+v", last)
		}
	}()
	eventually.True(n.t, "it is told that "+advice, func() bool {
		last = n.stalls("d")[0]
		return last.worst() == cause && strings.HasPrefix(last.Advice, advice)
	})
}

// Five ranks of 4 MiB each do not fit in 16 MiB: while four hold theirs, it is
// memory that the fifth waits for, and the advice says how much there should be.
// It is a step ahead of them: at the same one it would be refused.
func TestStallOfTooLittleMemory(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	s := newFixed(t, 10, 4<<20)
	n := p.start("--ram", "16MiB")
	n.create("d", s, "--ranks", "5", "--batch", "1")
	ranks := make([]*rank, 5)
	for i := range ranks {
		ranks[i] = newRank(t)
		ranks[i].send(order{Do: "open", Name: "b", Path: n.batch("d", i, i/4)})
		if i < 4 {
			must(t, ranks[i].receive().err())
		}
	}
	n.advises("admission", "memory is what is waited for: ranks hold or map 16 MiB, in 4 open files, and wait for 4.0 MiB more, of 16 MiB: --ram 20MiB has room for that")
	ranks[0].well(order{Do: "close", Name: "b"})
	must(t, ranks[4].receive().err())
}

// Six ranks at once, two workers, and a source that hangs: four ranks wait for a
// worker, and that is more than two wait for the source.
func TestStallOfTooFewWorkers(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	s, file := newSlow(t, p, 6)
	n := onOneCore(t, func() *node { return p.start() })
	n.create("d", s, "--ranks", "6", "--batch", "1")
	file.disk.Lock()
	heal := sync.OnceFunc(file.disk.Unlock)
	defer heal()
	ranks := make([]*rank, 6)
	for i := range ranks {
		ranks[i] = newRank(t)
		ranks[i].send(order{Do: "batch", Path: n.batch("d", i, 0)})
	}
	n.advises("admission", "a free worker is what is waited for: 2 batches are made at a time, for 6 ranks")
	heal()
	for _, r := range ranks {
		must(t, r.receive().err())
	}
}

// onOneCore runs what starts a process that is to have one core only.
func onOneCore(t *testing.T, start func() *node) *node {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &all))
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	must(t, unix.SchedSetaffinity(0, &one))
	defer func() { must(t, unix.SchedSetaffinity(0, &all)) }()
	return start()
}
