package namenode_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"rankfs/fetch/hdfs/namenode"
)

// A fake is the network with namenodes on it that speak the real protocol in
// memory. What they say is up to the test.
type fake struct {
	hosts map[string]func(*asked) // by address
	dials func(addr string)       // may be nil

	mu struct {
		sync.Mutex
		contexts []string // "user" or "user for other", as they connected
	}
	wg sync.WaitGroup
}

// asked is one call as a namenode sees it.
type asked struct {
	conn   net.Conn
	id     int32
	method string
	req    proto.Message
}

func (f *fake) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if f.dials != nil {
		f.dials(addr)
	}
	serve := f.hosts[addr]
	if serve == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	here, there := net.Pipe()
	f.wg.Go(func() { f.serve(there, serve) })
	return here, nil
}

// serve is a namenode's side of one connection.
func (f *fake) serve(nc net.Conn, answer func(*asked)) {
	defer nc.Close()
	r := bufio.NewReader(nc)
	var head [7]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:]) != "hrpc\x09\x00\x00" {
		return
	}
	parts, ok := readParts(r)
	if !ok {
		return
	}
	f.note(into("common.IpcConnectionContextProto", parts[1]))
	for {
		parts, ok := readParts(r)
		if !ok {
			return
		}
		header := into("common.RpcRequestHeaderProto", parts[0])
		method := get(into("common.RequestHeaderProto", parts[1]), "methodName").String()
		name := "hdfs." + strings.ToUpper(method[:1]) + method[1:] + "RequestProto"
		answer(&asked{nc, int32(get(header, "callId").Int()), method, into(name, parts[2])})
	}
}

func (f *fake) note(context proto.Message) {
	info := get(context, "userInfo").Message().Interface()
	who := get(info, "effectiveUser").String()
	if real := get(info, "realUser").String(); real != "" {
		who = real + " for " + who
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.contexts = append(f.mu.contexts, who)
}

// arg is a field of the request.
func (a *asked) arg(name protoreflect.Name) protoreflect.Value { return get(a.req, name) }

// reply answers with the method's response, its fields set.
func (a *asked) reply(set map[protoreflect.Name]any) {
	name := "hdfs." + strings.ToUpper(a.method[:1]) + a.method[1:] + "ResponseProto"
	a.send(packed(a.header(0, "", ""), made(name, set)))
}

// fail answers with an exception.
func (a *asked) fail(class, text string) { a.send(packed(a.header(1, class, text))) }

// fatal ends the connection with one.
func (a *asked) fatal(class, text string) {
	a.send(packed(a.header(2, class, text)))
	a.conn.Close()
}

// send is how everything is sent: a connection that broke is no defect.
func (a *asked) send(b []byte) { a.conn.Write(b) }

func (a *asked) header(status protoreflect.EnumNumber, class, text string) proto.Message {
	set := map[protoreflect.Name]any{"callId": uint32(a.id), "status": status}
	if class != "" {
		set["exceptionClassName"], set["errorMsg"] = class, text
	}
	return made("common.RpcResponseHeaderProto", set)
}

func made(name string, set map[protoreflect.Name]any) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("hadoop." + name))
	if err != nil {
		panic(err)
	}
	m := t.New()
	for k, v := range set {
		f := m.Descriptor().Fields().ByName(k)
		switch v := v.(type) {
		case []proto.Message:
			list := m.Mutable(f).List()
			for _, e := range v {
				list.Append(protoreflect.ValueOf(e.ProtoReflect()))
			}
		case proto.Message:
			m.Set(f, protoreflect.ValueOf(v.ProtoReflect()))
		default:
			m.Set(f, protoreflect.ValueOf(v))
		}
	}
	return m.Interface()
}

func get(m proto.Message, name protoreflect.Name) protoreflect.Value {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(name))
}

func into(name string, b []byte) proto.Message {
	m := made(name, nil)
	if err := proto.Unmarshal(b, m); err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	return m
}

func packed(messages ...proto.Message) []byte {
	b := make([]byte, 4)
	for _, m := range messages {
		body, err := proto.Marshal(m)
		if err != nil {
			panic(err)
		}
		b = protowire.AppendBytes(b, body)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// readParts reads a frame and cuts it into its messages.
func readParts(r io.Reader) (parts [][]byte, ok bool) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, false
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, false
	}
	for len(b) > 0 {
		part, n := protowire.ConsumeBytes(b)
		if n < 0 {
			panic("a request that cannot be cut")
		}
		parts, b = append(parts, part), b[n:]
	}
	return parts, true
}

// connected returns a client of the fake's namenodes at these addresses. It is
// closed, and all that the fake began has ended, when the test has.
func (f *fake) connected(t testing.TB, config namenode.Config) *namenode.Client {
	t.Helper()
	config.Dial = f.dial
	if config.User == "" {
		config.User = "alice"
	}
	c, err := namenode.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		f.wg.Wait()
	})
	return c
}

// file is a status; blocks are its locations, or nil.
func file(name string, size uint64, blocks proto.Message) proto.Message {
	set := map[protoreflect.Name]any{
		"fileType": protoreflect.EnumNumber(2), "path": []byte(name), "length": size,
		"permission": made("hdfs.FsPermissionProto", map[protoreflect.Name]any{"perm": uint32(0o644)}),
		"owner":      "alice", "group": "users", "modification_time": uint64(1_700_000_000_123), "access_time": uint64(0),
		"block_replication": uint32(2), "blocksize": uint64(blockSize), "fileId": uint64(16386),
	}
	if blocks != nil {
		set["locations"] = blocks
	}
	return made("hdfs.HdfsFileStatusProto", set)
}

func directory(name string) proto.Message {
	m := file(name, 0, nil).(*hdfs.FileStatus)
	m.ProtoReflect().Set(m.ProtoReflect().Descriptor().Fields().ByName("fileType"), protoreflect.ValueOfEnum(1))
	return m
}

const blockSize = 128 << 20

// located is where a file's blocks from the one of byte off to that before end
// are.
func located(size, off, end uint64) proto.Message {
	var blocks []proto.Message
	for at := off / blockSize * blockSize; off < size && at < min(end, size); at += blockSize {
		blocks = append(blocks, locatedBlock(at, min(blockSize, size-at)))
	}
	return made("hdfs.LocatedBlocksProto", map[protoreflect.Name]any{
		"fileLength": size, "blocks": blocks, "underConstruction": false, "isLastBlockComplete": true,
	})
}

func locatedBlock(off, size uint64) proto.Message {
	return made("hdfs.LocatedBlockProto", map[protoreflect.Name]any{
		"b": made("hdfs.ExtendedBlockProto", map[protoreflect.Name]any{
			"poolId": "BP-1", "blockId": 1073741825 + off/blockSize, "generationStamp": uint64(1001), "numBytes": size,
		}),
		"offset": off, "corrupt": false, "locs": []proto.Message{datanode(1), datanode(2)},
		"blockToken": made("common.TokenProto", map[protoreflect.Name]any{
			"identifier": []byte("i"), "password": []byte("p"), "kind": "k", "service": "s",
		}),
	})
}

func datanode(n int) proto.Message {
	return made("hdfs.DatanodeInfoProto", map[protoreflect.Name]any{
		"id": made("hdfs.DatanodeIDProto", map[protoreflect.Name]any{
			"ipAddr": fmt.Sprintf("10.0.0.%d", n), "hostName": fmt.Sprintf("dn%d", n), "datanodeUuid": fmt.Sprintf("uuid-%d", n),
			"xferPort": uint32(9866), "infoPort": uint32(9864), "ipcPort": uint32(9867),
		}),
		"location": "/rack-1",
	})
}
