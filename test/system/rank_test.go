package system_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// rankEnv makes the test binary a rank: a process that does what it is told
// on stdin, a line each, and answers each line on stdout.
const rankEnv = "RANKFS_SYSTEM_RANK"

// An order tells a rank what to do. Name is that of a file it opened before.
type order struct {
	Do   string // see the table in rankMain
	Name string
	Path string
	Off  int64
	Len  int64
}

// An answer is what came of it.
type answer struct {
	Errno string // ENOENT, SIGBUS ...; empty if it went well
	N     int64
	Sum   string // of the bytes
}

func (a answer) err() error {
	if a.Errno == "" {
		return nil
	}
	return errors.New(a.Errno)
}

// held is a file that a rank has open, or maps, or both.
type held struct {
	fd  int
	mem []byte
}

// A consumer is the state of a rank process.
type consumer struct{ files map[string]*held }

// rankMain is the rank. It stays on one thread, which a test can interrupt,
// and does everything by plain system calls, which are never repeated.
func rankMain() {
	runtime.LockOSThread()
	debug.SetPanicOnFault(true)
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT) // it interrupts and does not end
	c := consumer{make(map[string]*held)}
	verbs := map[string]func(order) (int64, string, error){
		"open":     c.open,
		"map":      c.mmap,
		"sum":      c.sum,
		"byte":     c.oneByte,
		"read":     c.read,
		"sendfile": c.sendfile,
		"close":    c.close,
		"unmap":    c.unmap,
		"batch":    c.batch,
		"stat":     c.stat,
		"touch":    c.touch,
	}
	maps.Copy(verbs, doings)
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	if out.Encode(answer{N: int64(unix.Gettid())}) != nil {
		return
	}
	for {
		var o order
		if in.Decode(&o) != nil {
			return // the test is over
		}
		var a answer
		var err error
		a.N, a.Sum, err = guarded(verbs[o.Do], o)
		a.Errno = errnoName(err)
		if out.Encode(a) != nil {
			return
		}
	}
}

var errFault = errors.New("SIGBUS")

// guarded turns a fault on mapped memory into an error.
func guarded(verb func(order) (int64, string, error), o order) (n int64, sum string, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(interface{ Addr() uintptr }); !ok {
				panic(r)
			}
			err = errFault
		}
	}()
	return verb(o)
}

func errnoName(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

func (c *consumer) open(o order) (int64, string, error) {
	fd, err := unix.Open(o.Path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, "", err
	}
	c.files[o.Name] = &held{fd: fd}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return st.Size, "", err
}

func (c *consumer) mmap(o order) (int64, string, error) {
	f := c.files[o.Name]
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil || st.Size == 0 {
		return 0, "", err
	}
	mem, err := unix.Mmap(f.fd, 0, int(st.Size), unix.PROT_READ, unix.MAP_SHARED)
	f.mem = mem
	return int64(len(mem)), "", err
}

func (c *consumer) sum(o order) (int64, string, error) {
	mem := c.files[o.Name].mem
	return int64(len(mem)), sumOf(mem), nil
}

// oneByte touches one page and no other.
func (c *consumer) oneByte(o order) (int64, string, error) {
	return int64(c.files[o.Name].mem[o.Off]), "", nil
}

// read reads from an offset on, to the end if there is no length.
func (c *consumer) read(o order) (int64, string, error) {
	h, at, buf := xxhash.New(), o.Off, make([]byte, 64<<10)
	for o.Len == 0 || at < o.Off+o.Len {
		want := len(buf)
		if o.Len > 0 {
			want = int(min(int64(want), o.Off+o.Len-at))
		}
		n, err := unix.Pread(c.files[o.Name].fd, buf[:want], at)
		if err != nil || n == 0 {
			return at - o.Off, hex(h.Sum64()), err
		}
		h.Write(buf[:n])
		at += int64(n)
	}
	return at - o.Off, hex(h.Sum64()), nil
}

func (c *consumer) sendfile(o order) (int64, string, error) {
	to, err := unix.MemfdCreate("copy", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, "", err
	}
	f := os.NewFile(uintptr(to), "copy")
	defer f.Close()
	var at int64
	for {
		n, err := unix.Sendfile(to, c.files[o.Name].fd, &at, 1<<20)
		if err != nil {
			return at, "", err
		}
		if n == 0 {
			break
		}
	}
	h := xxhash.New()
	n, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<40))
	return n, hex(h.Sum64()), err
}

func (c *consumer) close(o order) (int64, string, error) {
	f := c.files[o.Name]
	err := unix.Close(f.fd)
	f.fd = -1
	return 0, "", err
}

func (c *consumer) unmap(o order) (int64, string, error) {
	f := c.files[o.Name]
	mem := f.mem
	f.mem = nil
	if mem == nil {
		return 0, "", nil
	}
	return 0, "", unix.Munmap(mem)
}

// batch is a rank's whole life with a batch.
func (c *consumer) batch(o order) (n int64, sum string, err error) {
	o.Name = "batch"
	if _, _, err := c.open(o); err != nil {
		return 0, "", err
	}
	defer c.close(o)
	if _, _, err := c.mmap(o); err != nil {
		return 0, "", err
	}
	defer c.unmap(o)
	return c.sum(o)
}

func (c *consumer) stat(o order) (int64, string, error) {
	var st unix.Stat_t
	err := unix.Lstat(o.Path, &st)
	return st.Size, "", err
}

// touch opens, maps, touches and closes so many batches of a directory from one
// on, which begin with their numbers. It returns the median of what that took, in
// nanoseconds.
func (c *consumer) touch(o order) (int64, string, error) {
	var took []time.Duration
	for k := o.Off; k < o.Off+o.Len; k++ {
		begin := time.Now()
		fd, err := unix.Open(fmt.Sprintf("%s/batch-%06d", o.Path, k), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, "", err
		}
		mem, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return 0, "", err
		}
		if at := int64(binary.LittleEndian.Uint64(mem)); at != k {
			return 0, "", fmt.Errorf("batch %d begins with %d", k, at)
		}
		if err := errors.Join(unix.Munmap(mem), unix.Close(fd)); err != nil {
			return 0, "", err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return int64(took[len(took)/2]), "", nil
}

func hex(sum uint64) string { return fmt.Sprintf("%016x", sum) }

func sumOf(b []byte) string { return hex(xxhash.Sum64(b)) }

// A rank is the test's end of a rank process.
type rank struct {
	t      testing.TB
	cmd    *exec.Cmd
	orders io.WriteCloser
	out    *os.File
	in     *bufio.Reader
	pid    int
	tid    int // of the thread that does what it is told
	ended  chan struct{}
}

// answerTime bounds the wait for a rank. The longest that anything here does
// is a fill of some 30 MB under the race detector on one busy core.
const answerTime = toolTime

func newRank(t testing.TB) *rank {
	t.Helper()
	r := &rank{t: t, cmd: exec.Command(ranks), ended: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), rankEnv+"=1", "GODEBUG=asyncpreemptoff=1")
	r.cmd.Stderr = os.Stderr
	var err error
	r.orders, err = r.cmd.StdinPipe()
	must(t, err)
	out, err := r.cmd.StdoutPipe()
	must(t, err)
	r.out = out.(*os.File)
	r.in = bufio.NewReader(out)
	must(t, r.cmd.Start())
	r.pid = r.cmd.Process.Pid
	go func() { _, _ = r.cmd.Process.Wait(); close(r.ended) }() // not cmd.Wait, which closes pipes
	t.Cleanup(func() { r.end(); r.out.Close() })
	r.tid = int(r.receive().N)
	return r
}

// end ends the rank, as the end of its program would. It may be called twice.
func (r *rank) end() {
	r.t.Helper()
	r.orders.Close()
	select {
	case <-r.ended:
	case <-time.After(waitTime):
		r.t.Errorf("rank %d does not end", r.pid)
		r.kill()
	}
}

// kill ends it by a signal, as the kernel or a person would.
func (r *rank) kill() {
	r.t.Helper()
	_ = r.cmd.Process.Kill()
	select {
	case <-r.ended:
	case <-time.After(waitTime):
		r.t.Errorf("rank %d cannot be killed", r.pid)
	}
}

// send tells the rank what to do and does not wait.
func (r *rank) send(o order) {
	r.t.Helper()
	must(r.t, json.NewEncoder(r.orders).Encode(o))
}

// receive waits for the answer to what was sent.
func (r *rank) receive() answer {
	r.t.Helper()
	must(r.t, r.out.SetReadDeadline(time.Now().Add(answerTime)))
	line, err := r.in.ReadBytes('\n')
	if err != nil {
		r.t.Fatalf("rank %d does not answer: %v", r.pid, err)
	}
	var a answer
	must(r.t, json.Unmarshal(line, &a))
	return a
}

// answered reports whether receive would find an answer at once.
func (r *rank) answered() bool {
	must(r.t, r.out.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err := r.in.Peek(1)
	return err == nil
}

// try does what may fail.
func (r *rank) try(o order) answer {
	r.t.Helper()
	r.send(o)
	return r.receive()
}

// do does what must not fail.
func (r *rank) do(what, name string) answer {
	r.t.Helper()
	return r.well(order{Do: what, Name: name})
}

func (r *rank) well(o order) answer {
	r.t.Helper()
	a := r.try(o)
	if a.Errno != "" {
		r.t.Fatalf("rank %d: %s %s%s: %s", r.pid, o.Do, o.Name, o.Path, a.Errno)
	}
	return a
}

func (r *rank) open(name, path string) answer {
	r.t.Helper()
	return r.well(order{Do: "open", Name: name, Path: path})
}

// batch is the sum of a batch, mapped.
func (r *rank) batch(path string) string {
	r.t.Helper()
	return r.well(order{Do: "batch", Path: path}).Sum
}

// errno is how an operation on a path fails, or empty.
func (r *rank) errno(do, path string) string {
	r.t.Helper()
	return r.try(order{Do: do, Name: "errno", Path: path}).Errno
}
