package node_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/control"
	"rankfs/test/eventually"
)

// polls asks three readers of a queue of two batches what they could read, and
// has the third wait until the second has given its batch back. A batch that is
// at work is given a second time after ten seconds, on a machine that stands
// still for so long too.
const polls = `
import os, select, sys, threading, time
queue = "datasets/d/rank-0/queue"
a, b, c = (os.open(queue, os.O_RDONLY) for _ in range(3))
def ready(fd, wait):
    p = select.poll()
    p.register(fd, select.POLLIN)
    return bool(p.poll(wait))
def expect(fd, want, what):
    if ready(fd, 0) != want and (want or time.monotonic() < late): sys.exit(what)
expect(a, True, "a queue that no reader has begun: not ready")
first = os.read(a, 4096)
expect(a, True, "a batch is free: not ready")
expect(c, True, "a batch is free for another: not ready")
late = time.monotonic() + 9
second = os.read(b, 10)
expect(b, True, "half a line is left: not ready")
second += os.read(b, 4096)
for fd in a, b, c: expect(fd, False, "all is taken: ready")
if ready(os.open("datasets/d/rank-0/batch-000000", os.O_RDONLY), 0) != True: sys.exit("a batch: not ready")
if os.path.exists(".go-fuse-epoll-hack"): sys.exit("there is a file by which any user can switch polls off")
print("waits", flush=True)
def give():
    sys.stdin.readline()
    os.close(b)
threading.Thread(target=give).start()
if not ready(c, -1): sys.exit("woken, and not ready")
if os.read(c, 4096) != second: sys.exit("not the batch that was given back")
expect(a, False, "all is taken again: ready")
os.close(a)
if not ready(c, -1) or os.read(c, 4096) != first: sys.exit("not the other batch that was given back")
expect(c, True, "the last batch is in hand: not ready for the end")
if os.read(c, 4096) != b"": sys.exit("not the end")
`

// alone has one reader that does not wait read to the end, which it is told is there.
const alone = `
import os, select, sys
fd = os.open("datasets/d@epoch=3/rank-0/queue", os.O_RDONLY | os.O_NONBLOCK)
p = select.poll()
p.register(fd, select.POLLIN)
lines = 0
while True:
    if not p.poll(0): sys.exit("not ready after %d lines" % lines)
    try: line = os.read(fd, 4096)
    except BlockingIOError: sys.exit("ready after %d lines, and nothing to read" % lines)
    if not line: break
    lines += 1
if lines != 2: sys.exit("%d lines" % lines)
print("waits", flush=True)
p.unregister(fd)
p.register(0, select.POLLIN)
p.poll()
`

// edges waits for a queue as the runtime of Go does: it asks nothing, and is told
// of a change alone.
const edges = `
import os, select, sys, threading
queue = "datasets/d@epoch=1/rank-0/queue"
a, b, c = (os.open(queue, os.O_RDONLY | os.O_NONBLOCK) for _ in range(3))
e = select.epoll()
e.register(c, select.EPOLLIN | select.EPOLLET)
if not e.poll(-1): sys.exit("not ready at the beginning")
os.read(a, 4096), os.read(b, 4096)
try: sys.exit("took %r" % os.read(c, 4096))
except BlockingIOError: print("waits", flush=True)
def give():
    sys.stdin.readline()
    os.close(b)
    os.close(a)
threading.Thread(target=give).start()
lines = 0
while True:
    if not e.poll(-1): sys.exit("woken for nothing")
    try:
        while os.read(c, 4096): lines += 1
    except BlockingIOError: continue
    break
if lines != 2: sys.exit("%d lines" % lines)
`

// two has two readers wait who take one line each. At the first that is given back one of
// them gets it, and the other waits on, for the next.
const two = `
import os, queue, select, sys, threading, time
name = "datasets/d@epoch=4/rank-0/queue"
a, b = (os.open(name, os.O_RDONLY) for _ in range(2))
late = time.monotonic() + 9
lines = [os.read(a, 4096), os.read(b, 4096)]
got = queue.Queue()
def reads():
    fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    p = select.poll()
    p.register(fd, select.POLLIN)
    while True:
        p.poll()
        try: return got.put((fd, os.read(fd, 4096)))
        except BlockingIOError: pass
for _ in range(2): threading.Thread(target=reads, daemon=True).start()
def call(task):
    try: return open("/proc/self/task/%s/syscall" % task).read().split()[0]
    except OSError: return "" # it has ended
def polling():
    return sum(call(t) in ("7", "271") for t in os.listdir("/proc/self/task")) # poll and ppoll
def wait(n):
    while polling() != n and time.monotonic() < late: time.sleep(0.001)
    if got.qsize() and time.monotonic() < late: sys.exit("read a batch that no reader has given back")
wait(2)
print("waits", flush=True)
sys.stdin.readline()
os.close(a)
first, line = got.get()
if line != lines[0] and time.monotonic() < late: sys.exit("not the batch that was given back")
wait(1)
os.close(b)
second, line = got.get()
if line != lines[1] and time.monotonic() < late: sys.exit("not the other batch that was given back")
readers = [first, second]
while readers:
    try:
        if not os.read(readers[0], 4096): readers.pop(0)
    except BlockingIOError: readers.reverse()
`

// program has another process hold both batches while it reads, in Go.
const program = `
import os, subprocess, sys
queue = "datasets/d@epoch=2/rank-0/queue"
a, b = (os.open(queue, os.O_RDONLY) for _ in range(2))
os.read(a, 4096), os.read(b, 4096)
reader = subprocess.Popen([sys.argv[1]], env={"READ_QUEUE": queue}, stdout=subprocess.PIPE)
print("reader", reader.pid, flush=True)
sys.stdin.readline()
os.close(b)
os.close(a)
out, _ = reader.communicate()
if reader.returncode or out.count(b"\n") != 2: sys.exit("it read %r" % out)
`

// TestMain makes another program of this one, for a test, which reads a file.
func TestMain(m *testing.M) {
	name := os.Getenv("READ_QUEUE")
	if name == "" {
		os.Exit(m.Run())
	}
	f, err := os.Open(name)
	if err == nil {
		_, err = io.Copy(os.Stdout, f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A queue is ready for poll(2) when a read would not wait, which it takes nothing
// to find out, and a reader that polls it is woken, also one that is told once only.
func TestPollOfAQueue(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("one\ntwo\n"), 0600); err != nil {
		t.Fatal(err)
	}
	r := run(t, nil)
	r.create(control.CreateRequest{Name: "d", Source: "file:" + source, Ranks: 1, Batch: "1"})
	for name, program := range map[string]string{"levels": polls, "edges": edges, "go": program, "alone": alone, "two": two} {
		t.Run(name, func(t *testing.T) { r.waiter(t, program) })
	}
	for _, name := range []string{"d", "d@epoch=1", "d@epoch=2", "d@epoch=3", "d@epoch=4"} {
		if q, err := r.client.Queue(t.Context(), name); err != nil || q.Done != 2 || q.Nodes[0].Read != 2 {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
	}
}

// waiter runs a program in the mount, and tells it to go on when it, or the one
// that it names, waits in poll(2) or epoll_wait(2).
func (r running) waiter(t *testing.T, program string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := r.program(ctx, "python3", "-c", program, self)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	tell, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	says, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var wrong strings.Builder
	c.Stderr = &wrong
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(says).ReadString('\n')
	pid := c.Process.Pid
	fmt.Sscanf(line, "reader %d", &pid)
	late := eventually.Until(ctx, func() error {
		if line != "" && !polling(pid) {
			return errors.New("it does not wait")
		}
		return nil
	})
	_, err = io.WriteString(tell, "\n")
	if err := errors.Join(late, err, c.Wait()); err != nil {
		t.Errorf("%v; it said %q, %s", err, line, wrong.String())
	}
}

// polling reports whether a thread of a process waits for files.
func polling(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	for _, task := range tasks {
		now, _ := os.ReadFile(task)
		call, _, _ := strings.Cut(string(now), " ")
		if n, err := strconv.Atoi(call); err == nil && slices.Contains(waits, n) {
			return true
		}
	}
	return false
}

var waits = []int{unix.SYS_POLL, unix.SYS_PPOLL, unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2}
