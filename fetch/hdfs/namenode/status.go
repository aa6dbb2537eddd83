package namenode

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"rankfs/meta"
)

// Bits of HdfsFileStatusProto's flags.
const hasCrypt = 2

const isDir, isLink = 1, 3 // HdfsFileStatusProto's file types

// maxSize keeps sums of sizes and offsets far from an overflow.
const maxSize = math.MaxInt64 / 4

// statusOf is a namenode's status, without blocks, if it makes sense.
func statusOf(m *hdfs.FileStatus) (Status, error) {
	name := string(m.GetPath())
	if strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
		return Status{}, fmt.Errorf("name %q in the reply %w", name, meta.ErrCorrupt)
	}
	if m.GetLength() > maxSize || m.GetBlocksize() > maxSize || m.GetModificationTime() > maxSize {
		return Status{}, fmt.Errorf("size, block size or time of %q in the reply %w", name, meta.ErrCorrupt)
	}
	return Status{
		Name:        name,
		Dir:         m.GetFileType() == isDir,
		Size:        int64(m.GetLength()),
		ModTime:     time.UnixMilli(int64(m.GetModificationTime())),
		FileID:      m.GetFileId(),
		Encrypted:   m.GetFileEncryptionInfo() != nil || m.GetFlags()&hasCrypt != 0,
		ErasureCode: codeOf(m),
		Link:        linkOf(m),
	}, nil
}

// builtinCodes are the policies that namenodes name by number alone.
var builtinCodes = [...]string{1: "RS-6-3-1024k", "RS-3-2-1024k", "RS-LEGACY-6-3-1024k", "XOR-2-1-1024k", "RS-10-4-1024k"}

// codeOf names the erasure code of a file, or of new files in a directory.
func codeOf(m *hdfs.FileStatus) string {
	switch code := m.GetEcPolicy(); {
	case code == nil:
		return ""
	case code.GetName() != "":
		return code.GetName()
	case code.GetId() > 0 && code.GetId() < uint32(len(builtinCodes)):
		return builtinCodes[code.GetId()]
	default:
		return fmt.Sprintf("policy %d", code.GetId())
	}
}

func linkOf(m *hdfs.FileStatus) string {
	if m.GetFileType() != isLink {
		return ""
	}
	return string(m.GetSymlink())
}

// blocksOf returns the blocks of the n bytes from off on, as m has them. The types of
// m's parts have no names here, so one function reads them all.
func (c *Client) blocksOf(m *hdfs.FileStatus, off, n int64) (*Blocks, error) {
	from := m.GetLocations()
	if from.GetFileLength() > maxSize {
		return nil, fmt.Errorf("file of %d bytes in the reply %w", from.GetFileLength(), meta.ErrCorrupt)
	}
	to := &Blocks{
		Size:   int64(from.GetFileLength()),
		Open:   from.GetUnderConstruction(),
		Blocks: make([]Block, 0, len(from.GetBlocks())),
	}
	for _, lb := range from.GetBlocks() {
		b, err := block(lb.GetOffset(), lb.GetB())
		if err != nil {
			return nil, err
		}
		b.Message = lb
		b.Replicas = make([]Replica, len(lb.GetLocs()))
		for i, at := range lb.GetLocs() {
			b.Replicas[i] = c.replica(at.GetId(), at.GetLocation())
		}
		to.Blocks = append(to.Blocks, b)
	}
	return to, to.check(off, n)
}

func block(off uint64, b interface {
	GetPoolId() string
	GetBlockId() uint64
	GetGenerationStamp() uint64
	GetNumBytes() uint64
}) (Block, error) {
	if off > maxSize || b.GetNumBytes() > maxSize {
		return Block{}, fmt.Errorf("block of bytes %d+%d in the reply %w", off, b.GetNumBytes(), meta.ErrCorrupt)
	}
	return Block{
		Off:   int64(off),
		Size:  int64(b.GetNumBytes()),
		Pool:  b.GetPoolId(),
		ID:    b.GetBlockId(),
		Stamp: b.GetGenerationStamp(),
	}, nil
}

func (c *Client) replica(id interface {
	GetIpAddr() string
	GetHostName() string
	GetDatanodeUuid() string
	GetXferPort() uint32
}, rack string) Replica {
	host := id.GetIpAddr()
	if c.config.Data.UseHostname {
		host = id.GetHostName()
	}
	return Replica{
		Host: id.GetHostName(),
		Addr: net.JoinHostPort(host, strconv.FormatUint(uint64(id.GetXferPort()), 10)),
		ID:   id.GetDatanodeUuid(),
		Rack: rack,
	}
}

// check drops the blocks behind the file's end, where a client may be writing, and
// makes sure that the others cover the n bytes from off on, as far as the file has
// them, without a gap. Where the file is one of a snapshot its last block may be longer
// than it: the file has grown since.
func (b *Blocks) check(off, n int64) error {
	for i, x := range b.Blocks {
		if b.Open && (x.Size == 0 || x.Off+x.Size > b.Size) {
			b.Blocks = b.Blocks[:i]
			break
		}
	}
	if last := len(b.Blocks) - 1; last >= 0 && b.Blocks[last].Off < b.Size {
		b.Blocks[last].Size = min(b.Blocks[last].Size, b.Size-b.Blocks[last].Off)
	}
	end := off
	for i, x := range b.Blocks {
		if i == 0 && x.Off > off || i > 0 && x.Off != end || x.Size == 0 {
			return fmt.Errorf("list of blocks %w: it has one at %d+%d, but %d is due", meta.ErrCorrupt, x.Off, x.Size, end)
		}
		end = x.Off + x.Size
	}
	if due := min(b.Size, off+n); end < due {
		return fmt.Errorf("list of blocks %w: it ends at %d of %d", meta.ErrCorrupt, end, due)
	}
	return nil
}
