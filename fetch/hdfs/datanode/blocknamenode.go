package datanode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"rankfs/fetch/hdfs/namenode"
)

// dial opens the range [from, to) of a block at one replica.
func (c *Client) dial(ctx context.Context, b namenode.Block, r namenode.Replica, g Guard, from, to int64) (*link, error) {
	located, pass, err := offer(b, r, to)
	if err != nil {
		return nil, err
	}
	g = g.at(r.Addr)
	w := &wire{client: c, ctx: ctx, addr: r.Addr, local: c.isLocal(r), guard: g, proof: g.proof(pass), at: from}
	f := &blockNamenode{located: located, size: to}
	l := &link{wire: w, end: to}
	l.client, err = hdfs.NewClient(hdfs.ClientOptions{
		Addresses: []string{"block"}, User: cmp.Or(c.config.User, "ticket"), // for the blockNamenode alone, but it must be there
		NamenodeDialFunc: f.dial, DatanodeDialFunc: w.dial,
	})
	if err != nil {
		return nil, err
	}
	l.stop = context.AfterFunc(ctx, w.close)
	if l.file, err = l.client.Open("/block"); err == nil {
		_, err = l.file.Seek(from, io.SeekStart)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// offer is the block as the library shall see it: at one replica, and no
// longer than wanted, since it asks a datanode for all that there is. With it
// comes the block's token.
func offer(b namenode.Block, r namenode.Replica, end int64) (proto.Message, token, error) {
	m, ok := like((&hdfs.FileStatus{}).GetLocations().GetBlocks(), b.Message)
	if !ok {
		return nil, nil, fmt.Errorf("block %d: its location is a %T", b.ID, b.Message)
	}
	for _, loc := range m.GetLocs() {
		if loc.GetId().GetDatanodeUuid() != r.ID {
			continue
		}
		one := proto.CloneOf(m)
		one.Locs = append(one.Locs[:0], loc)
		one.StorageTypes, one.StorageIDs, one.IsCached = nil, nil, nil
		one.Offset = proto.Uint64(0)
		one.B.NumBytes = proto.Uint64(uint64(end))
		all := makeLike((&hdfs.FileStatus{}).GetLocations())
		all.FileLength = proto.Uint64(uint64(end))
		all.Blocks = append(all.Blocks, one)
		all.UnderConstruction, all.IsLastBlockComplete = proto.Bool(false), proto.Bool(true)
		return all, m.GetBlockToken(), nil
	}
	return nil, nil, fmt.Errorf("block %d: datanode %s is not among its locations", b.ID, r.ID)
}

// The library does not export the types of its messages, but Go can infer them from
// its exported declarations.

func like[T proto.Message](_ []T, m proto.Message) (T, bool) {
	t, ok := m.(T)
	return t, ok
}

func makeLike[T any](*T) *T { return new(T) }

// A blockNamenode is the namenode of one library client: it knows one file, which is a
// range of one block at one datanode.
type blockNamenode struct {
	located proto.Message
	size    int64
}

// dial is the library's NamenodeDialFunc.
func (n *blockNamenode) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer ours.Close()
		n.serve(ours) // ends with an error when the other end is closed
	}()
	return theirs, nil
}

// serve answers calls until the connection ends. Both ends are this process: a call
// that it does not understand is a broken invariant, and ends the connection too.
func (n *blockNamenode) serve(c net.Conn) error {
	var preamble [7]byte
	if _, err := io.ReadFull(c, preamble[:]); err != nil {
		return err
	}
	if _, err := readFrame(c); err != nil { // the connection context: user and protocol
		return err
	}
	for {
		frame, err := readFrame(c)
		if err != nil {
			return err
		}
		id, method, err := parseCall(frame)
		if err != nil {
			return err
		}
		answer, err := n.answer(method)
		if _, werr := c.Write(response(id, answer, err)); werr != nil {
			return werr
		}
	}
}

// answer returns the message that a response to the call wraps.
func (n *blockNamenode) answer(method string) ([]byte, error) {
	switch method {
	case "getFileInfo":
		return marshal(fileOf(n.size))
	case "getBlockLocations":
		return marshal(n.located)
	case "getServerDefaults":
		var b []byte // block size, checksum, packet, replication, buffer: all required, none used
		for field := range protowire.Number(5) {
			b = protowire.AppendTag(b, field+1, protowire.VarintType)
			b = protowire.AppendVarint(b, 1)
		}
		return b, nil
	case "renewLease":
		return nil, nil
	}
	return nil, fmt.Errorf("unexpected call %s", method)
}

func marshal(m proto.Message) ([]byte, error) {
	if m == nil {
		return nil, nil
	}
	return proto.Marshal(m)
}

func fileOf(size int64) *hdfs.FileStatus {
	s := &hdfs.FileStatus{Path: []byte("block"), Length: proto.Uint64(uint64(size)),
		Owner: proto.String(""), Group: proto.String(""),
		ModificationTime: proto.Uint64(0), AccessTime: proto.Uint64(0)}
	kind := s.GetFileType()
	kind = 2 // IS_FILE
	s.FileType = &kind
	s.Permission = makeLike(s.GetPermission())
	s.Permission.Perm = proto.Uint32(0)
	return s
}

// maxFrame is more than a call about one block takes.
const maxFrame = 1 << 20

func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return nil, fmt.Errorf("call of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

// parseCall takes the call's id from an RpcRequestHeaderProto and its method
// from the RequestHeaderProto after it.
func parseCall(frame []byte) (id uint64, method string, err error) {
	header, n := protowire.ConsumeBytes(frame)
	if n < 0 {
		return 0, "", protowire.ParseError(n)
	}
	request, m := protowire.ConsumeBytes(frame[n:])
	if m < 0 {
		return 0, "", protowire.ParseError(m)
	}
	const callID, methodName = 3, 1
	if v := field(header, callID); v != nil {
		zigzag, _ := protowire.ConsumeVarint(v)
		id = uint64(uint32(protowire.DecodeZigZag(zigzag)))
	}
	if v := field(request, methodName); v != nil {
		b, _ := protowire.ConsumeBytes(v)
		method = string(bytes.Clone(b))
	}
	return id, method, nil
}

// response is an RpcResponseHeaderProto and, after it, a message whose first
// field is the answer.
func response(id uint64, answer []byte, err error) []byte {
	const callID, status, exception, text = 1, 2, 4, 5
	var header, body []byte
	header = protowire.AppendTag(header, callID, protowire.VarintType)
	header = protowire.AppendVarint(header, id)
	header = protowire.AppendTag(header, status, protowire.VarintType)
	if err != nil {
		header = protowire.AppendVarint(header, 1) // ERROR
		header = protowire.AppendTag(header, exception, protowire.BytesType)
		header = protowire.AppendString(header, "java.io.IOException")
		header = protowire.AppendTag(header, text, protowire.BytesType)
		header = protowire.AppendString(header, err.Error())
	} else {
		header = protowire.AppendVarint(header, 0) // SUCCESS
		if answer != nil {
			body = protowire.AppendTag(body, 1, protowire.BytesType)
			body = protowire.AppendBytes(body, answer)
		}
	}
	frame := protowire.AppendBytes(make([]byte, 4), header)
	frame = protowire.AppendBytes(frame, body)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}
