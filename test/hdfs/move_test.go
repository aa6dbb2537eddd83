package hdfs_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	_ "github.com/colinmarc/hdfs/v2" // registers HDFS's messages
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/test/cluster"
)

// move has a block go from this host to one that has it not, as Hadoop's balancer
// does: that one's datanode takes it from this one's, and tells the namenode which
// replica is to be deleted for it.
func (j *job) move(id uint64) error {
	names, err := namenode.New(namenode.Config{Addresses: j.c.Addresses(), User: "root", Dial: j.c.Host("client").DialContext})
	if err != nil {
		return err
	}
	defer names.Close()
	located, err := names.Locate(j.t.Context(), j.file, 0, 1<<40)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(located.Blocks, func(b namenode.Block) bool { return b.ID == id })
	if i < 0 {
		return fmt.Errorf("block %d is not one of %s", id, j.file)
	}
	b := located.Blocks[i]
	to := slices.IndexFunc(j.c.DataNodes(), func(h *cluster.Host) bool { return !h.HasReplica(id) })
	from := slices.IndexFunc(b.Replicas, func(r namenode.Replica) bool { return r.Host == j.Host.Name })
	if to < 0 || from < 0 {
		return fmt.Errorf("block %d is on %+v", id, b.Replicas)
	}
	if err := j.c.ReportBlocks(j.t.Context()); err != nil {
		return err
	}
	return replaceBlock(j.t.Context(), j.c.DataNodes()[to], b, from)
}

// replaceBlock asks a datanode to take a block from the one that has its replica number
// from (operation REPLACE_BLOCK).
func replaceBlock(ctx context.Context, at *cluster.Host, b namenode.Block, from int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	location := b.Message.ProtoReflect()
	header := message("BaseHeaderProto")
	set(header, "block", part(location, "b"))
	set(header, "token", part(location, "blockToken"))
	m := message("OpReplaceBlockProto")
	set(m, "header", protoreflect.ValueOfMessage(header))
	set(m, "delHint", protoreflect.ValueOfString(b.Replicas[from].ID))
	set(m, "source", part(location, "locs").List().Get(from))
	body, err := proto.Marshal(m.Interface())
	if err != nil {
		return err
	}
	conn, err := at.DialContext(ctx, "tcp", at.IP+":9866")
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	const version, operation, success, inProgress = 28, 83, 0, 12
	if _, err := conn.Write(protowire.AppendBytes(append(binary.BigEndian.AppendUint16(nil, version), operation), body)); err != nil {
		return err
	}
	for r := bufio.NewReader(conn); ; {
		size, err := binary.ReadUvarint(r)
		if err != nil {
			return err
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(r, text); err != nil {
			return err
		}
		answer := message("BlockOpResponseProto")
		if err := proto.Unmarshal(text, answer.Interface()); err != nil {
			return err
		}
		switch part(answer, "status").Enum() {
		case inProgress:
		case success:
			return nil
		default:
			return fmt.Errorf("move block %d: the datanode on %s says %v", b.ID, at.Name, answer)
		}
	}
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

func set(m protoreflect.Message, name protoreflect.Name, v protoreflect.Value) {
	m.Set(m.Descriptor().Fields().ByName(name), v)
}
