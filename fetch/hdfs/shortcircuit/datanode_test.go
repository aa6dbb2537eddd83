package shortcircuit_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/test/eventually"
)

// A replica is a block's two files, as a datanode has them.
type replica struct {
	t          testing.TB
	content    []byte
	data, sums string
}

// newReplica writes a block with a checksum for each per bytes.
func newReplica(t testing.TB, size, per int, kind byte) replica {
	t.Helper()
	content := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(size)}).Read(content)
	table := crc32.IEEETable
	if kind == 2 {
		table = crc32.MakeTable(crc32.Castagnoli)
	}
	sums := binary.BigEndian.AppendUint32([]byte{0, 1, kind}, uint32(per))
	for at := 0; at < size; at += per {
		sums = binary.BigEndian.AppendUint32(sums, crc32.Checksum(content[at:min(size, at+per)], table))
	}
	r := replica{t, content, filepath.Join(t.TempDir(), "blk"), filepath.Join(t.TempDir(), bare)}
	r.write(r.data, content)
	r.write(r.sums, sums)
	return r
}

func (r replica) write(name string, b []byte) {
	r.t.Helper()
	if err := os.WriteFile(name, b, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// A datanode answers each connection by answer. Its socket is in a folder that
// none but its owner may write.
type datanode struct {
	t      testing.TB
	socket string
	listen net.Listener
	asked  atomic.Int64 // connections
}

func newDatanode(t testing.TB, answer func(*net.UnixConn)) *datanode {
	t.Helper()
	// The folders above are looked at too, and all users may write in /tmp.
	dir, err := os.MkdirTemp("/run", "rankfs-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &datanode{t: t, socket: filepath.Join(dir, "dn.9866")}
	d.start(answer)
	return d
}

func (d *datanode) start(answer func(*net.UnixConn)) {
	d.t.Helper()
	listen, err := net.Listen("unix", d.socket)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { listen.Close() })
	d.listen = listen
	go func() {
		for {
			c, err := listen.Accept()
			if err != nil {
				return
			}
			d.asked.Add(1)
			go func() {
				defer c.Close()
				answer(c.(*net.UnixConn))
			}()
		}
	}()
}

func (d *datanode) client(t testing.TB) *shortcircuit.Client {
	c := shortcircuit.New(shortcircuit.Config{
		Path: strings.ReplaceAll(d.socket, "9866", "_PORT"), Timeout: 5 * time.Second, BackOff: time.Hour, Age: time.Hour, Keep: 4})
	t.Cleanup(func() {
		c.Close()
		eventually.True(t, "no block's files are open at the end", func() bool { return c.Snapshot().Files == 0 })
	})
	return c
}

func block(id uint64, size int) shortcircuit.Block {
	kind, err := protoregistry.GlobalTypes.FindMessageByName("hadoop.hdfs.ExtendedBlockProto")
	if err != nil {
		panic(err)
	}
	m := kind.New()
	fields := m.Descriptor().Fields()
	m.Set(fields.ByName("poolId"), protoreflect.ValueOfString("pool"))
	m.Set(fields.ByName("blockId"), protoreflect.ValueOfUint64(id))
	m.Set(fields.ByName("generationStamp"), protoreflect.ValueOfUint64(1))
	return shortcircuit.Block{Pool: "pool", ID: id, Stamp: 1, Size: int64(size), Addr: "127.0.0.1:9866", Header: m.Interface()}
}

// heard reads a request, and reports whether it is one.
func heard(c net.Conn) bool {
	_, ok := asked(c)
	return ok
}

// asked reads a request, and returns the block's number.
func asked(c net.Conn) (id uint64, ok bool) {
	var head [3]byte
	if _, err := io.ReadFull(c, head[:]); err != nil || head != [3]byte{0, 28, 87} {
		return 0, false
	}
	var b []byte
	for one := make([]byte, 1); ; {
		if _, err := c.Read(one); err != nil {
			return 0, false
		}
		if b = append(b, one[0]); one[0] < 0x80 {
			break
		}
	}
	size, _ := protowire.ConsumeVarint(b)
	q := make([]byte, size)
	if _, err := io.ReadFull(c, q); err != nil {
		return 0, false
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName("hadoop.hdfs.OpRequestShortCircuitAccessProto")
	if err != nil {
		panic(err)
	}
	m := kind.New()
	if err := proto.Unmarshal(q, m.Interface()); err != nil {
		return 0, false
	}
	for _, field := range []protoreflect.Name{"header", "block"} {
		m = m.Get(m.Descriptor().Fields().ByName(field)).Message()
	}
	return m.Get(m.Descriptor().Fields().ByName("blockId")).Uint(), true
}

// bare is what a replica's file of checksums is called: passed, it has the name
// that a datanode gives that of the block asked for.
const bare = "blk.meta"

func namedFor(id uint64, name string) string {
	if filepath.Base(name) != bare {
		return name
	}
	own := filepath.Join(filepath.Dir(name), fmt.Sprintf("blk_%d_1.meta", id))
	if err := os.Link(name, own); err != nil && !errors.Is(err, fs.ErrExist) {
		panic(err)
	}
	return own
}

// named is a status as the protocol numbers it.
func named(status protoreflect.Name) uint64 {
	kind, err := protoregistry.GlobalTypes.FindEnumByName("hadoop.hdfs.Status")
	if err != nil {
		panic(err)
	}
	return uint64(kind.Descriptor().Values().ByName(status).Number())
}

func status(code uint64, words string) []byte {
	m := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), code)
	m = protowire.AppendString(protowire.AppendTag(m, 5, protowire.BytesType), words)
	m = protowire.AppendVarint(protowire.AppendTag(m, 6, protowire.VarintType), 1)
	return protowire.AppendBytes(nil, m)
}

// pass answers with the named files.
func pass(names ...string) func(*net.UnixConn) { return passAfter(func() {}, names...) }

func passAfter(opened func(), names ...string) func(*net.UnixConn) {
	return func(c *net.UnixConn) {
		id, ok := asked(c)
		if !ok {
			return
		}
		var fds []int
		for _, name := range names {
			fd, err := unix.Open(namedFor(id, name), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err != nil {
				panic(err)
			}
			defer unix.Close(fd)
			fds = append(fds, fd)
		}
		opened()
		c.Write(status(named("SUCCESS"), ""))
		c.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
		c.Read(make([]byte, 1)) // until they are taken, these are open too
	}
}

func read(c *shortcircuit.Client, b shortcircuit.Block, p []byte, off int) error {
	f, err := c.Open(context.Background(), b)
	if err != nil {
		return err
	}
	defer f.Release()
	err = f.ReadAt(p, int64(off))
	if err != nil {
		f.Fail(err)
	}
	return err
}
