package datanode_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
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
func located(t *testing.T, ids ...string) namenode.Block {
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
func answer(kind, per uint64, rest ...byte) []byte {
	field := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	nested := func(b []byte, n protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
	}
	info := field(nested(nil, 1, field(field(nil, 1, kind), 2, per)), 2, 0)
	return append(protowire.AppendBytes(nil, nested(field(nil, 1, 0), 4, info)), rest...)
}

// packet is the header of a packet that says to have n bytes of data.
func packet(n int32) []byte {
	b := []byte{0, 0, 0, 4, 0, 25}
	b = binary.LittleEndian.AppendUint64(append(b, 1<<3|1), 0) // offset in the block
	b = binary.LittleEndian.AppendUint64(append(b, 2<<3|1), 0) // number of the packet
	b = append(b, 3<<3, 0)
	return binary.LittleEndian.AppendUint32(append(b, 4<<3|5), uint32(n))
}

// Whatever a datanode sends, a read ends with an error, and soon.
func TestHostile(t *testing.T) {
	const crc32c = 2
	for _, test := range []struct {
		name string
		send []byte
	}{
		{"nothing", nil},
		{"noise", []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")},
		{"an endless length", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		{"a reply of 16 GiB", []byte{0xff, 0xff, 0xff, 0xff, 0x3f}},
		{"checksums of nothing", answer(crc32c, 0, packet(100)...)},
		{"an unknown checksum", answer(77, 512, packet(100)...)},
		{"a packet of no bytes", answer(crc32c, 512, packet(0)...)},
		{"packets of no bytes", answer(crc32c, 512, append(packet(0), packet(0)...)...)},
		{"a packet of less than no bytes", answer(crc32c, 512, packet(-5)...)},
		{"a packet that ends", answer(crc32c, 512, packet(1000)...)},
	} {
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
					if _, err := s.Read(make([]byte, 1000)); !errors.Is(err, datanode.ErrNoReplica) || ctx.Err() != nil {
						t.Errorf("a read ends with %v", err)
					}
				})
			})
		}
	}
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
		c := datanode.New(datanode.Config{User: "root", Rest: 30 * time.Second, Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
			if addr == "silent:1" {
				asked.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			const unchecked = 0
			data := append(packet(1000), make([]byte, 1000)...)
			return sends(answer(unchecked, 512, append(data, packet(0)...)...), false), nil
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
				if round == 0 { // so that somebody has found out
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

// sends is a connection to somebody who sends that, whatever he is told.
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
