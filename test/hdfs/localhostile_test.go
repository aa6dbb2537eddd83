package hdfs_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/colinmarc/hdfs/v2" // registers HDFS's messages
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"rankfs/test/cluster"
)

// A passed is what a datanode answers to a request for a block's files.
type passed struct {
	block  uint64
	answer []byte // before the files
	files  []int  // descriptors: of the block's bytes, and of its checksums
}

// A proxy is at the socket of a datanode, and alters what that passes.
type proxy struct {
	t          *testing.T
	at, behind string // sockets: its own, and the datanode's
	alter      func(*passed) error
	listen     *net.UnixListener
	work       sync.WaitGroup
	altered    atomic.Int64 // answers
}

// newProxy takes the place of the datanode's socket until the test ends.
func newProxy(t *testing.T, d *place) *proxy {
	t.Helper()
	p := &proxy{t: t, at: d.outside(d.socket()), behind: d.outside("/run/behind")}
	check(t, os.Rename(p.at, p.behind))
	t.Cleanup(func() {
		p.end()
		check(t, os.Rename(p.behind, p.at))
	})
	return p
}

// begin has it alter what is passed from now on. Its socket is another than before, as
// that of a datanode that begins anew is.
func (p *proxy) begin(alter func(*passed) error) {
	p.t.Helper()
	p.end()
	listen, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.at, Net: "unix"})
	check(p.t, err)
	p.listen, p.alter = listen, alter
	p.altered.Store(0)
	p.work.Go(func() {
		for {
			c, err := listen.AcceptUnix()
			if err != nil {
				return
			}
			p.work.Go(func() {
				defer c.Close()
				if err := p.serve(c); err != nil {
					p.t.Errorf("proxy of the datanode: %v", err)
				}
			})
		}
	})
}

func (p *proxy) end() {
	if p.listen != nil {
		p.listen.Close()
		p.work.Wait()
		p.listen = nil
	}
}

// serve passes on one question and its altered answer.
func (p *proxy) serve(c *net.UnixConn) error {
	id, question, err := readQuestion(c)
	if err != nil {
		return nil // the client has gone
	}
	to, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: p.behind, Net: "unix"})
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := to.Write(question); err != nil {
		return err
	}
	got := &passed{block: id}
	if got.answer, got.files, err = readPassed(to); err != nil {
		return err
	}
	own := got.files
	err = p.alter(got)
	if err == nil {
		c.Write(got.answer)
		if got.files != nil {
			c.WriteMsgUnix([]byte{0}, unix.UnixRights(got.files...), nil)
		}
		p.altered.Add(1)
	}
	for _, fd := range own {
		unix.Close(fd)
	}
	return err
}

// readQuestion reads what asks for a block's files, as it is.
func readQuestion(c io.Reader) (id uint64, text []byte, err error) {
	var all bytes.Buffer
	r := bufio.NewReaderSize(io.TeeReader(oneByOne{c}, &all), 16)
	if _, err := r.Discard(3); err != nil {
		return 0, nil, err
	}
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, nil, err
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, err
	}
	m := message("OpRequestShortCircuitAccessProto")
	if err := proto.Unmarshal(body, m.Interface()); err != nil {
		return 0, nil, err
	}
	return part(part(part(m, "header").Message(), "block").Message(), "blockId").Uint(), all.Bytes(), nil
}

// oneByOne reads a byte at a time: no more than was asked for.
type oneByOne struct{ io.Reader }

func (r oneByOne) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }

// readPassed reads an answer, and the files that come with it.
func readPassed(c *net.UnixConn) (answer []byte, files []int, err error) {
	r := bufio.NewReaderSize(oneByOne{c}, 16)
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, nil, err
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, nil, err
	}
	answer = protowire.AppendBytes(nil, body)
	m := message("BlockOpResponseProto")
	if err := proto.Unmarshal(body, m.Interface()); err != nil || part(m, "status").Enum() != 0 {
		return answer, nil, err
	}
	space := make([]byte, unix.CmsgSpace(4*8))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), space)
	if err != nil {
		return nil, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(space[:n])
	for _, m := range messages {
		fds, _ := unix.ParseUnixRights(&m)
		files = append(files, fds...)
	}
	return answer, files, err
}

// Between ranks and their datanode is one that passes other files than it should, or
// none: no byte is wrong, no read fails, no replica is held for corrupt, since they
// are not, nothing that was passed stays open, and the log says once that blocks are
// refused, and that they no longer are.
func TestLocalBlocksOfAHostileDatanode(t *testing.T) {
	c := cluster.MountsAlone(t)
	p := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile())
	j := p.job(t, c.Dir(t)+"/hostile", lines(5000), twice)
	blocks := j.blocks()
	if len(blocks) < 2 {
		t.Fatalf("the host has %d blocks", len(blocks))
	}
	dir := t.TempDir()
	open := func(name string, flags int) (fd int, err error) {
		if fd, err = unix.Open(name, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err == nil {
			t.Cleanup(func() { unix.Close(fd) })
		}
		return fd, err
	}
	// copied passes a copy of the block's bytes, altered, in place of them.
	copied := func(alter func([]byte) []byte) func(*passed) error {
		return func(a *passed) error {
			name, err := replica(j.Host, a.block)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			f, err := os.CreateTemp(dir, "")
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := f.Write(alter(content)); err != nil {
				return err
			}
			a.files = []int{0, a.files[1]}
			a.files[0], err = open(f.Name(), unix.O_RDONLY)
			return err
		}
	}
	// instead passes files of another block: its bytes, or its checksums too.
	instead := func(sumsToo bool) func(*passed) error {
		return func(a *passed) (err error) {
			other := blocks[0]
			if other == a.block {
				other = blocks[1]
			}
			files := a.files
			a.files = []int{0, files[1]}
			name, err := replica(j.Host, other)
			if err == nil {
				a.files[0], err = open(name, unix.O_RDONLY)
			}
			if err != nil || !sumsToo {
				return err
			}
			if name, err = j.Host.Sums(other); err == nil {
				a.files[1], err = open(name, unix.O_RDONLY)
			}
			return err
		}
	}
	pipe := filepath.Join(dir, "pipe")
	check(t, unix.Mkfifo(pipe, 0o600))

	const useless, blockwise = "over TCP: ", "short-circuit; "
	x := newProxy(t, j.place)
	for _, row := range []struct {
		name      string
		alter     func(*passed) error
		how, says string
	}{
		{"hangs up", func(a *passed) error { a.answer, a.files = nil, nil; return nil }, useless, "its answer"},
		{"an answer without end", func(a *passed) error { a.answer, a.files = protowire.AppendVarint(nil, 1<<40), nil; return nil }, useless, "is corrupt"},
		{"no file", func(a *passed) error { a.answer, a.files = append(a.answer, 0), nil; return nil }, useless, "0 files"},
		{"one file", func(a *passed) error { a.files = a.files[:1]; return nil }, useless, "1 files"},
		{"three files", func(a *passed) error { a.files = append(a.files, a.files[0]); return nil }, useless, "3 files"},
		{"the other way round", func(a *passed) error { a.files = []int{a.files[1], a.files[0]}; return nil }, blockwise, ""},
		{"a pipe", func(a *passed) (err error) {
			a.files = []int{0, a.files[1]}
			a.files[0], err = open(pipe, unix.O_RDONLY)
			return err
		}, blockwise, "it is no file"},
		{"a file that cannot be read", func(a *passed) error {
			name, err := replica(j.Host, a.block)
			if err == nil {
				a.files = []int{0, a.files[1]}
				a.files[0], err = open(name, unix.O_WRONLY)
			}
			return err
		}, blockwise, "bad file descriptor"},
		{"bytes of another block", instead(false), blockwise, ""},
		{"another block", instead(true), blockwise, "it is that of blk_"},
		{"a block that is cut short", copied(func(b []byte) []byte { return b[:len(b)-1] }), blockwise, "is corrupt"},
		{"a block with more bytes", copied(func(b []byte) []byte { return append(b, make([]byte, 64<<10)...) }), blockwise, "its file of checksums"},
		{"a block with another byte", copied(func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), blockwise, "does not match"},
	} {
		logged := len(j.Log())
		x.begin(row.alter)
		j.askAnew()
		j.says(row.name, row.how, row.says)
		j.goOn(row.name)
		if x.altered.Load() == 0 {
			t.Errorf("%s: the proxy was not asked", row.name)
		}
		x.begin(func(*passed) error { return nil })
		j.askAnew()
		j.byFile("after that of " + row.name)
		want := 0
		if row.how == blockwise {
			want = 1
		}
		log := j.Log()[logged:]
		if refused, ended := strings.Count(log, "a block of this host is read over TCP"), strings.Count(log, "no block of this host is refused"); refused != want || ended != want {
			t.Errorf("%s: the log says %d times that a block is refused, and %d times that none is any more, want %d:\n%s", row.name, refused, ended, want, log)
		}
	}
	if s := j.status().HDFS; s.Corrupt != 0 || s.Failures != 0 {
		t.Errorf("status says %+v", s)
	}
	j.end()
}

// Messages of HDFS have types that cannot be named outside of the library.

func message(name protoreflect.Name) protoreflect.Message {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("hadoop.hdfs").Append(name))
	if err != nil {
		panic(err)
	}
	return kind.New()
}

func part(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}
