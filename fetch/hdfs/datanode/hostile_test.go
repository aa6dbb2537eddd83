package datanode_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
)

// located is a block of 1000 bytes at datanodes of those ids.
func located(t testing.TB, ids ...string) namenode.Block {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName("hadoop.hdfs.LocatedBlockProto")
	if err != nil {
		t.Fatal(err)
	}
	bytes := func(b []byte, field protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
	}
	number := func(b []byte, field protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
	}
	block := number(number(bytes(nil, 1, []byte("pool")), 2, 7), 3, 1)
	token := bytes(bytes(bytes(bytes(nil, 1, nil), 2, nil), 3, nil), 4, nil)
	m := number(bytes(nil, 1, block), 2, 0)
	b := namenode.Block{Size: 1000, ID: 7}
	for _, id := range ids {
		node := bytes(bytes(bytes(nil, 1, []byte("127.0.0.1")), 2, []byte(id)), 3, []byte(id))
		for _, port := range []protowire.Number{4, 5, 6} {
			node = number(node, port, 1)
		}
		m = bytes(m, 3, bytes(nil, 1, node))
		b.Replicas = append(b.Replicas, namenode.Replica{Host: id, Addr: id + ":1", ID: id})
	}
	m = bytes(number(m, 4, 0), 5, token)
	b.Message = kind.New().Interface()
	if err := proto.Unmarshal(m, b.Message); err != nil {
		t.Fatal(err)
	}
	return b
}

// answer begins with a reply of success, for checksums of that many bytes.
func answer(kind, per uint64, rest ...byte) []byte { return answerFrom(0, kind, per, rest...) }

// answerFrom is that of a block from some byte on.
func answerFrom(from, kind, per uint64, rest ...byte) []byte {
	field := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	nested := func(b []byte, n protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
	}
	info := field(nested(nil, 1, field(field(nil, 1, kind), 2, per)), 2, from)
	return append(protowire.AppendBytes(nil, nested(field(nil, 1, 0), 4, info)), rest...)
}

// refusal is a reply of no success.
func refusal(words string) []byte { return refusalFor(1, words) }

func refusalFor(code uint64, words string) []byte {
	const status, message = 1, 5
	b := protowire.AppendVarint(protowire.AppendTag(nil, status, protowire.VarintType), code)
	return protowire.AppendBytes(nil, protowire.AppendString(protowire.AppendTag(b, message, protowire.BytesType), words))
}

// packet begins one that says to have n bytes of data, with the checksums for
// every 512.
func packet(n int32) []byte { return packetAt(0, n, n+4*((n+511)/512)) }

// packetAt begins one of size bytes in all, from some byte of the block on.
func packetAt(at uint64, n, size int32) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(size+4))
	b = binary.LittleEndian.AppendUint64(append(b, 0, 25, 1<<3|1), at)
	b = binary.LittleEndian.AppendUint64(append(b, 2<<3|1), 0) // number of the packet
	b = append(b, 3<<3, 0)
	return binary.LittleEndian.AppendUint32(append(b, 4<<3|5), uint32(n))
}

// last is the packet that ends what was sent up to some byte of the block.
func last(at int) []byte {
	b := packetAt(uint64(at), 0, 0)
	b[len(b)-6] = 1
	return b
}

// whole is a packet of that content, with its checksums.
func whole(content []byte) []byte {
	b := packet(int32(len(content)))
	for rest := range slices.Chunk(content, 512) {
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(rest, crc32.MakeTable(crc32.Castagnoli)))
	}
	return append(b, content...)
}

const crc32c = 2

// hostile is what no sound datanode sends for a block of 1000 zeros.
var hostile = []struct {
	name    string
	send    []byte
	says    string
	corrupt bool // and counted as such
}{
	{"nothing", nil, "", false},
	{"noise", []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), "", false},
	{"an endless length", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "", false},
	{"a reply of 16 GiB", []byte{0xff, 0xff, 0xff, 0xff, 0x3f}, "17179869183 bytes", false},
	{"a reply of nothing", protowire.AppendBytes(nil, []byte{0x22, 0}), "required field", false},
	{"a refusal in the library's words", refusal("invalid checksum"), "invalid checksum", false},
	{"no checksums", answer(0, 512, zeros(0)...), "there are none", true},
	{"an unknown checksum", answer(77, 512, packet(100)...), "unsupported", false},
	{"checksums of another kind", answer(1, 512, zeros(crc32c)...), "invalid checksum", true},
	{"checksums of nothing", answer(crc32c, 0, packet(100)...), "for every 0 bytes", true},
	{"checksums of a byte", answer(crc32c, 1, packetAt(0, 1<<24, 5<<24)...), "for every 1 bytes", true},
	{"checksums of 63 bytes", answer(crc32c, 63, packet(100)...), "for every 63 bytes", true},
	{"checksums of 2 GiB", answer(crc32c, 1<<31, packetAt(0, 1000, 1004)...), "for every 2147483648 bytes", true},
	{"checksums of 1 MiB and a byte", answer(crc32c, 1<<20+1, packetAt(0, 1000, 1004)...), "for every 1048577 bytes", true},
	{"a block from another byte on", answerFrom(512, crc32c, 512, packetAt(512, 100, 104)...), "begins at 512", false},
	{"a packet of another byte", answer(crc32c, 512, packetAt(512, 100, 104)...), "begins at 512", false},
	{"a packet of 2 GiB", answer(crc32c, 512, packetAt(0, 1<<31-1, 1<<20)...), "2147483647 bytes", false},
	{"a packet of 16 MiB and a byte", answer(crc32c, 1<<20, packetAt(0, 1<<24+1, 1<<24+1+17*4)...), "16777217 bytes", false},
	{"a packet without checksums", answer(crc32c, 512, packetAt(0, 1000, 1000)...), "in 1000", false},
	{"a packet without a header", answer(crc32c, 512, 0, 0, 0, 4, 0, 0), "required field", false},
	{"a packet of no bytes", answer(crc32c, 512, packet(0)...), "", false},
	{"packets of no bytes", answer(crc32c, 512, append(packet(0), packet(0)...)...), "", false},
	{"a packet of less than no bytes", answer(crc32c, 512, packet(-5)...), "-5 bytes", false},
	{"a packet that ends", answer(crc32c, 512, packet(1000)...), "", false},
	{"a wrong byte", answer(crc32c, 512, spoil(zeros(crc32c), 300)...), "invalid checksum", true},
}

// zeros is a packet of a block of zeros, with checksums or without.
func zeros(kind int) []byte {
	if kind == 0 {
		return append(packetAt(0, 1000, 1000), make([]byte, 1000)...)
	}
	return whole(make([]byte, 1000))
}

func spoil(b []byte, at int) []byte {
	b[at] ^= 1
	return b
}

// Whatever a datanode sends, a read ends with an error, and soon.
func TestHostile(t *testing.T) {
	for _, test := range hostile {
		for _, hangUp := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := located(t, "a")
					c := datanode.New(datanode.Config{User: "root", Dial: func(context.Context, string, string) (net.Conn, error) {
						return sends(test.send, hangUp), nil
					}})
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					s := c.Open(ctx, b, 0, 1000)
					defer s.Close()
					_, err := s.Read(make([]byte, 1000))
					if !errors.Is(err, datanode.ErrNoReplica) || ctx.Err() != nil || !strings.Contains(err.Error(), test.says) {
						t.Errorf("a read ends with %v", err)
					}
					if n := c.Snapshot().Corrupt; (n == 1) != test.corrupt {
						t.Errorf("%d corrupt replicas are counted", n)
					}
				})
			})
		}
	}
}

// FuzzAnswer has a datanode send anything: a read ends, with an error or with
// the bytes of which it sent the checksums.
func FuzzAnswer(f *testing.F) {
	f.Add(answer(crc32c, 512, append(zeros(crc32c), last(1000)...)...))
	f.Add(answer(crc32c, 64, packetAt(0, 1, 5)...))
	for _, test := range hostile {
		f.Add(test.send)
	}
	b := located(f, "a")
	f.Fuzz(func(t *testing.T, send []byte) {
		c := datanode.New(datanode.Config{User: "root", Timeout: time.Second, Dial: func(context.Context, string, string) (net.Conn, error) {
			return sends(send, true), nil
		}})
		s := c.Open(t.Context(), b, 0, 1000)
		defer s.Close()
		got := make([]byte, 1000)
		_, err := s.Read(got)
		if err == nil && !bytes.Contains(send, got[:63]) {
			t.Errorf("read what was not sent: %x", got[:63])
		}
		if err != nil && !errors.Is(err, datanode.ErrNoReplica) {
			t.Errorf("a read ends with %v", err)
		}
	})
}

// A datanode that sends a byte now and then does not hold up a read for ever.
func TestTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := datanode.New(datanode.Config{User: "root", Timeout: 10 * time.Second, Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				go io.Copy(io.Discard, theirs)
				theirs.Write(answer(2, 512, packet(1000)...))
				for {
					time.Sleep(3 * time.Second)
					if _, err := theirs.Write([]byte{1}); err != nil {
						return
					}
				}
			}()
			return ours, nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		s := c.Open(ctx, located(t, "a"), 0, 1000)
		if _, err := s.Read(make([]byte, 1000)); !errors.Is(err, datanode.ErrNoReplica) || ctx.Err() != nil {
			t.Errorf("a read ends with %v", err)
		}
		s.Close()
		time.Sleep(time.Minute) // for the datanode to notice
	})
}

// While a datanode is silent each rest costs one read a timeout, not all.
func TestRested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c := datanode.New(datanode.Config{User: "root", BackOff: 30 * time.Second, Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
			if addr == "silent:1" {
				asked.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return sends(answer(crc32c, 512, append(zeros(crc32c), last(1000)...)...), false), nil
		}})
		b := located(t, "silent", "sound")
		for round := range int64(3) {
			var readers sync.WaitGroup
			for range 8 {
				time.Sleep(time.Millisecond)
				readers.Go(func() {
					s := c.Open(t.Context(), b, 0, 1000)
					defer s.Close()
					if _, err := s.Read(make([]byte, 1000)); err != nil {
						t.Error(err)
					}
				})
				if round == 0 { // so that one of them has found out
					readers.Wait()
				}
			}
			readers.Wait()
			if n := asked.Load(); n != round+1 {
				t.Errorf("asked %d times in %d rounds", n, round+1)
			}
			time.Sleep(time.Minute)
		}
	})
}

// sends is a connection to a datanode that sends b, whatever it is told.
func sends(b []byte, hangUp bool) net.Conn {
	ours, theirs := net.Pipe()
	go io.Copy(io.Discard, theirs)
	go func() {
		theirs.Write(b)
		if hangUp {
			theirs.Close()
		}
	}()
	return ours
}
