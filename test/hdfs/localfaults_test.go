package hdfs_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// A job is ranks on a datanode's host that read a dataset over and over, by the
// files of its blocks where they can. The cache gives up between rounds what no
// rank has open.
type job struct {
	*place
	file   string // in HDFS
	want   []string
	rounds []atomic.Int64 // of each rank, all of them right
	stop   atomic.Bool
	work   sync.WaitGroup
}

const jobRanks = 2

// readers begin when they have read by file, and end with the test at the latest.
func (d *place) readers(view, file, content string) *job {
	d.t.Helper()
	j := &job{place: d, file: file, rounds: make([]atomic.Int64, jobRanks)}
	for i := range jobRanks {
		got, err := j.rank(view, i)
		if err != nil {
			d.t.Fatal(err)
		}
		j.want = append(j.want, got)
	}
	if !slices.Equal(sorted(strings.Join(j.want, "")), sorted(content)) {
		d.t.Fatal("the ranks read other lines than the file has")
	}
	for i := range j.want {
		j.work.Go(func() { j.read(view, i) })
	}
	d.t.Cleanup(j.end)
	j.byFile("in peace")
	return j
}

func (j *job) rank(view string, i int) (string, error) {
	return j.Tool("sh", "-c", `"$0" --run "$1/run" cache evict "$2" >/dev/null; cat "$1/mnt/datasets/$2/rank-$3"/batch-*[0-9]`,
		rankfs, j.Dir, view, fmt.Sprint(i))
}

func (j *job) read(view string, i int) {
	for !j.stop.Load() {
		switch got, err := j.rank(view, i); {
		case err != nil:
			j.t.Errorf("rank %d: %v", i, err)
			return
		case got != j.want[i]:
			j.t.Errorf("rank %d has read other bytes", i)
			return
		}
		j.rounds[i].Add(1)
	}
}

// end ends the readers.
func (j *job) end() {
	j.stop.Store(true)
	j.work.Wait()
}

// goOn waits until each rank has read all once more, from here on.
func (j *job) goOn(when string) {
	j.t.Helper()
	for i := range j.rounds {
		from := j.rounds[i].Load()
		eventually.Within(j.t, toolTime, when+": the ranks go on", func() bool { return j.rounds[i].Load() > from+1 || j.t.Failed() })
	}
}

// byFile waits until all that is read is, for a round.
func (j *job) byFile(when string) {
	j.t.Helper()
	eventually.Within(j.t, toolTime, when+": blocks are read by file", func() bool {
		from := j.status().HDFS
		j.goOn(when)
		to := j.status().HDFS
		n := to.Bytes - from.Bytes
		return j.t.Failed() || n > 0 && to.Files-from.Files == n && to.LocalBlocks == "short-circuit"
	})
}

// overTCP waits until status says why they are not.
func (j *job) overTCP(when, cause string) {
	j.t.Helper()
	said := ""
	eventually.Within(j.t, toolTime, when+": blocks are read over TCP: "+cause, func() bool {
		said = j.status().HDFS.LocalBlocks
		return j.t.Failed() || strings.HasPrefix(said, "over TCP: ") && strings.Contains(said, cause)
	})
	j.goOn(when)
}

// blocks of the file that the host has.
func (j *job) blocks() (ids []uint64) {
	j.t.Helper()
	all, err := j.c.Blocks(j.t.Context(), j.file)
	if err != nil {
		j.t.Fatal(err)
	}
	for _, b := range all {
		if j.Host.HasReplica(b.ID) {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// askAnew has the datanode be asked for each block's files: those that are open
// have changed, though not in what they hold.
func (j *job) askAnew() {
	j.t.Helper()
	for _, id := range j.blocks() {
		sums, err := j.Host.Sums(id)
		if err == nil {
			err = os.Chmod(sums, 0o644)
		}
		if err != nil {
			j.t.Fatal(err)
		}
	}
}

// Ranks read blocks of their host while its datanode and its socket fail: no
// byte is wrong, and no read fails, since other hosts have the blocks.
func TestLocalBlocksFail(t *testing.T) {
	c := cluster.Exclusive(t)
	host := c.Host("data1")
	dir := c.Dir(t)
	content := lines(5000)
	p := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile())
	socket := strings.TrimSpace(p.Must("sh", "-c", "echo /run/datanode.*"))

	// faults take the socket from its use, which is tried again after a minute: each
	// has a daemon of its own.
	faults := map[string]func(t *testing.T, j *job){
		"stopped": func(t *testing.T, j *job) {
			check(t, host.Stop(cluster.DataNode))
			j.askAnew()
			j.overTCP("stopped", "its answer")
			check(t, host.Continue(cluster.DataNode))
			j.goOn("continued")
		},
		"restarted": func(t *testing.T, j *job) {
			check(t, host.Restart(cluster.DataNode))
			j.byFile("restarted")
		},
		"a file for a socket": func(t *testing.T, j *job) {
			j.Must("sh", "-c", `mv "$0" /run/aside && echo >"$0"`, socket)
			j.askAnew()
			j.overTCP("a file for a socket", socket+" is no socket")
			j.Must("mv", "/run/aside", socket)
		},
		"another's socket": func(t *testing.T, j *job) {
			j.Must("mv", socket, "/run/aside")
			listenAs(t, 12345, fmt.Sprintf("/proc/%d/root%s", host.Pid, socket))
			j.askAnew()
			j.overTCP("another's socket", "user 12345 listens at it")
			j.Must("mv", "/run/aside", socket)
		},
	}
	for i, name := range []string{"a file for a socket", "another's socket", "stopped", "restarted"} {
		t.Run(name, func(t *testing.T) {
			d := (&place{p.For(t), t, c}).start()
			file := fmt.Sprintf("%s/%d", dir, i)
			host.Put(t, file, []byte(content), 2, block)
			d.create(fmt.Sprintf("train%d", i), file, "--ranks", fmt.Sprint(jobRanks))
			t.Cleanup(func() { // also of one that failed
				d.Must("sh", "-c", `[ ! -e /run/aside ] || mv /run/aside "$0"`, socket)
			})
			j := d.readers(fmt.Sprintf("train%d", i), file, content)
			faults[name](t, j)
			j.end()
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listenAs has a user listen at a socket that root has made, and say nothing.
func listenAs(t *testing.T, user int, path string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	t.Cleanup(func() { check(t, unix.Close(fd)) })
	check(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	check(t, os.Chmod(path, 0o666))
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with the user that it is
		_, _, no := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(user), uintptr(user), uintptr(user))
		if no != 0 {
			done <- no
			return
		}
		done <- syscall.Listen(fd, 16)
	}()
	check(t, <-done)
}
