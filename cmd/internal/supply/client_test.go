package supply_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/cmd/internal/supply"
)

// The test binary is also the client and the server of the tests, so that
// each can be killed alone: supply.test VERB ARGS under this variable.
const childVariable = "SUPPLY_TEST_CHILD"

func TestMain(m *testing.M) {
	if verb := os.Getenv(childVariable); verb != "" {
		if err := child(verb, os.Args[1:]); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(verb string, args []string) error {
	switch verb {
	case "serve":
		timeout, err := time.ParseDuration(args[3])
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		return supply.Run(ctx, supply.Config{
			Maps: args[0], Pipes: args[1], Batches: args[2], Timeout: timeout,
			Log: slog.New(slog.NewTextHandler(os.Stdout, nil)),
		})
	case "read":
		return readAll(args[0], args[1], args[2])
	case "first":
		return readFirst(args[0], args[1], args[2])
	case "hold":
		return holdAt(args[0], args[1])
	case "send":
		return send(args[0], args[1], args[2])
	}
	return fmt.Errorf("no verb %q", verb)
}

// readAll is the paper's client: blocking opens, no deadline, one batch after
// the other until the data ends or a number of them is read. It prints
// "batch SEQUENCE TOTAL CRC" and the status that ended it.
func readAll(pipe, mapped, limit string) error {
	var c client
	defer c.unmap()
	return c.readAll(pipe, mapped, limit)
}

func (c *client) readAll(pipe, mapped, limit string) error {
	n, err := strconv.ParseUint(limit, 10, 64)
	if err != nil {
		return err
	}
	for k := uint64(0); k < n; k++ {
		note, err := c.next(pipe, mapped, k)
		lost := note.status == 2 && note.sequence == math.MaxUint64
		if lost || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) {
			fmt.Println("again", k) // the server died
			k--
			continue
		}
		if err != nil {
			return err
		}
		if note.status != 0 {
			fmt.Println("status", note.status)
			break
		}
		fmt.Println("batch", note.sequence, note.total, crc32.ChecksumIEEE(c.data[:note.total]))
	}
	return request(pipe, math.MaxUint64)
}

// readFirst looks for its pipe, maps its file once, and is then as readAll.
func readFirst(pipe, mapped, limit string) error {
	fmt.Println("looking")
	for {
		if _, err := os.Lstat(pipe); err == nil {
			break
		}
		time.Sleep(50 * time.Microsecond)
	}
	var c client
	if err := c.reach(mapped, 1); err != nil {
		return err
	}
	defer c.unmap()
	return c.readAll(pipe, "", limit) // no file to map again
}

// holdAt goes through one cycle up to a stage, says so, and stays.
func holdAt(pipe, stage string) error {
	stop := func(here string) {
		if stage == here {
			fmt.Println("at", here)
			time.Sleep(time.Hour)
		}
	}
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	stop("opened to ask")
	half := binary.LittleEndian.AppendUint64(nil, 1)
	if stage == "half a request" {
		w.Write(half[:3])
		stop(stage)
	}
	w.Write(half)
	stop("asked")
	w.Close()
	stop("closed after asking")
	r, err := os.OpenFile(pipe, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	stop("opened to read")
	part := make([]byte, 20)
	io.ReadFull(r, part)
	stop("half an answer")
	io.ReadFull(r, make([]byte, 36))
	stop("answered")
	return fmt.Errorf("no stage %q", stage)
}

// send writes any bytes, then waits for an answer if told to.
func send(pipe, text, answer string) error {
	raw, err := hex.DecodeString(text)
	if err != nil {
		return err
	}
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	w.Write(raw)
	w.Close()
	if answer == "no answer" {
		return nil
	}
	note, err := hear(pipe)
	fmt.Println("status", note.status)
	return err
}

// A client maps its file as far as its batches reach.
type client struct{ data []byte }

type note struct {
	sequence, offset, total uint64
	sizes                   [7]uint32
	status                  uint32
}

func (c *client) next(pipe, mapped string, sequence uint64) (note, error) {
	if err := request(pipe, sequence); err != nil {
		return note{}, err
	}
	n, err := hear(pipe)
	if err != nil || n.status != 0 {
		return n, err
	}
	if n.offset != 0 || n.sizes != [7]uint32{6: uint32(n.total)} || n.sequence != sequence {
		return n, fmt.Errorf("asked for %d, told %+v", sequence, n)
	}
	return n, c.reach(mapped, n.total)
}

func (c *client) reach(mapped string, total uint64) error {
	if total <= uint64(len(c.data)) {
		return nil
	}
	c.unmap()
	f, err := os.Open(mapped)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	c.data, err = syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	return err
}

func (c *client) unmap() {
	if c.data != nil {
		syscall.Munmap(c.data)
		c.data = nil
	}
}

// request and hear use bare system calls, as a C program would: os.OpenFile
// would hand the FIFO to the poller.
func request(pipe string, sequence uint64) error {
	fd, err := openBlocking(pipe, syscall.O_WRONLY)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = syscall.Write(fd, binary.LittleEndian.AppendUint64(nil, sequence))
	return err
}

func hear(pipe string) (note, error) {
	fd, err := openBlocking(pipe, syscall.O_RDONLY)
	if err != nil {
		return note{}, err
	}
	defer syscall.Close(fd)
	return readNote(fd)
}

const notificationBytes = 56

func readNote(fd int) (note, error) {
	var b [notificationBytes]byte
	for got := 0; got < len(b); {
		n, err := syscall.Read(fd, b[got:])
		if err == syscall.EINTR {
			continue
		}
		if n == 0 && err == nil {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return note{}, fmt.Errorf("%d bytes of an answer: %w", got, err)
		}
		got += n
	}
	le := binary.LittleEndian
	n := note{sequence: le.Uint64(b[:]), offset: le.Uint64(b[8:]), total: le.Uint64(b[16:]), status: le.Uint32(b[52:])}
	for i := range n.sizes {
		n.sizes[i] = le.Uint32(b[24+4*i:])
	}
	return n, nil
}

func openBlocking(path string, flag int) (int, error) {
	for {
		fd, err := syscall.Open(path, flag|syscall.O_CLOEXEC, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// A process is a child and what it prints.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	all   []string
}

func start(t *testing.T, verb string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), childVariable+"="+verb, "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait() })
	return p
}

// until reads lines up to one that contains text.
func (p *process) until(text string) {
	p.t.Helper()
	for p.lines.Scan() {
		p.all = append(p.all, p.lines.Text())
		if strings.Contains(p.lines.Text(), text) {
			return
		}
	}
	p.t.Fatalf("child ended without printing %q; it printed %q", text, p.all)
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// finish is what the child prints until it ends by itself.
func (p *process) finish() []string {
	p.t.Helper()
	for p.lines.Scan() {
		p.all = append(p.all, p.lines.Text())
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("child: %v: %q", err, p.all)
	}
	return p.all
}
