package namenode

import (
	"context"
	"fmt"
	"math"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"rankfs/fetch/hdfs/message"
	"rankfs/meta"
)

// Stat asks for the status of a path. It follows no symbolic link.
func (c *Client) Stat(ctx context.Context, name string) (Status, error) {
	const method = "getFileInfo"
	if err := checkPath(name); err != nil {
		return Status{}, err
	}
	resp := message.New("hdfs.GetFileInfoResponseProto", nil)
	addr, err := c.call(ctx, method, name, message.New("hdfs.GetFileInfoRequestProto", message.Fields{"src": name}), resp)
	if err != nil {
		return Status{}, err
	}
	m, _ := message.Part(resp, "fs").(*hdfs.FileStatus)
	if m == nil {
		return Status{}, c.problem(ctx, method, name, addr, meta.ErrNotExist)
	}
	st, err := statusOf(m)
	st.Name = ""
	return st, c.problem(ctx, method, name, addr, err)
}

// locateSpan is how much of a file is located by one call. At HDFS's smallest
// blocks, of 1 MiB, its reply has 45 MiB.
const locateSpan = 64 << 30

// Locate asks where the n bytes of a file from off on are. It returns whole
// blocks, with tokens for datanodes, and fewer if the file ends before.
func (c *Client) Locate(ctx context.Context, name string, off, n int64) (*Blocks, error) {
	const method = "getBlockLocations"
	if err := checkPath(name); err != nil {
		return nil, err
	}
	if off < 0 || n < 0 {
		return nil, fmt.Errorf("locate %q: bytes %d+%d: %w", name, off, n, meta.ErrInvalid)
	}
	end := off + min(n, math.MaxInt64-off)
	var all *Blocks
	for at := off; ; {
		got, err := c.locate(ctx, name, at, min(end-at, locateSpan))
		if err != nil {
			return nil, err
		}
		if all, err = join(all, got); err != nil {
			return nil, c.problem(ctx, method, name, "", err)
		}
		if end, at = min(end, all.Size), all.end(at); at >= end {
			return all, nil
		}
	}
}

func (c *Client) locate(ctx context.Context, name string, off, n int64) (*Blocks, error) {
	const method = "getBlockLocations"
	req := message.New("hdfs.GetBlockLocationsRequestProto", message.Fields{"src": name, "offset": uint64(off), "length": uint64(n)})
	resp := message.New("hdfs.GetBlockLocationsResponseProto", nil)
	addr, err := c.call(ctx, method, name, req, resp)
	if err != nil {
		return nil, err
	}
	st := new(hdfs.FileStatus)
	if st.Locations = as(message.Part(resp, "locations"), st.Locations); st.Locations == nil {
		return nil, c.problem(ctx, method, name, addr, meta.ErrNotExist)
	}
	b, err := c.blocksOf(st, off, n)
	return b, c.problem(ctx, method, name, addr, err)
}

// as is m as the type of like, which cannot be written here.
func as[T proto.Message](m proto.Message, like T) T {
	t, _ := m.(T)
	return t
}

// join appends the blocks of got, which begin where a's end.
func join(a, got *Blocks) (*Blocks, error) {
	if a == nil {
		return got, nil
	}
	if a.Size != got.Size && !got.Open {
		return nil, fmt.Errorf("%w: its size went from %d to %d while it was located", meta.ErrStale, a.Size, got.Size)
	}
	a.Size, a.Open = got.Size, got.Open
	a.Blocks = append(a.Blocks, got.Blocks...)
	return a, nil
}

// end is where the blocks that are known end, at least at.
func (b *Blocks) end(at int64) int64 {
	if len(b.Blocks) == 0 {
		return at
	}
	last := b.Blocks[len(b.Blocks)-1]
	return last.Off + last.Size
}

// EncryptsData asks whether datanodes demand connections with the key of EncryptionKey.
func (c *Client) EncryptsData(ctx context.Context) (bool, error) {
	resp := message.New("hdfs.GetServerDefaultsResponseProto", nil)
	if _, err := c.call(ctx, "getServerDefaults", "", message.New("hdfs.GetServerDefaultsRequestProto", nil), resp); err != nil {
		return false, err
	}
	return message.Get(message.Get(resp, "serverDefaults").Message().Interface(), "encryptDataTransfer").Bool(), nil
}

// EncryptionKey asks for a key for connections to datanodes: hdfs/v2's
// DataEncryptionKeyProto, and when it ends to be valid. The message is nil if
// the cluster does not encrypt.
func (c *Client) EncryptionKey(ctx context.Context) (key proto.Message, until time.Time, err error) {
	resp := message.New("hdfs.GetDataEncryptionKeyResponseProto", nil)
	_, err = c.call(ctx, "getDataEncryptionKey", "", message.New("hdfs.GetDataEncryptionKeyRequestProto", nil), resp)
	if err != nil {
		return nil, time.Time{}, err
	}
	if key = message.Part(resp, "dataEncryptionKey"); key == nil {
		return nil, time.Time{}, nil
	}
	return key, time.UnixMilli(int64(message.Get(key, "expiryDate").Uint())), nil
}

// ReportCorrupt reports the replica of a block at a datanode as corrupt, so that the
// namenode has a sound one copied in its place.
func (c *Client) ReportCorrupt(ctx context.Context, b Block, datanode string) error {
	const method = "reportBadBlocks"
	one := proto.Clone(b.Message)
	locs := message.Get(one, "locs").List()
	kept := 0
	for i := range locs.Len() {
		id := message.Get(locs.Get(i).Message().Interface(), "id").Message().Interface()
		if message.Get(id, "datanodeUuid").String() == datanode {
			locs.Set(kept, locs.Get(i))
			kept++
		}
	}
	if kept == 0 {
		return fmt.Errorf("block %d: datanode %s is not among its locations", b.ID, datanode)
	}
	locs.Truncate(kept)
	for _, name := range []protoreflect.Name{"isCached", "storageTypes", "storageIDs"} { // one for each location
		one.ProtoReflect().Clear(one.ProtoReflect().Descriptor().Fields().ByName(name))
	}
	req := message.New("hdfs.ReportBadBlocksRequestProto", nil)
	message.Add(req, "blocks", []proto.Message{one})
	_, err := c.call(ctx, method, "", req, message.New("hdfs.ReportBadBlocksResponseProto", nil))
	return err
}

// maxPath is HDFS's own bound.
const maxPath = 8000

// checkPath refuses paths that a namenode would interpret in its own way.
func checkPath(name string) error {
	if !strings.HasPrefix(name, "/") || path.Clean(name) != name || len(name) > maxPath ||
		!utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("HDFS path %q %w: give an absolute path of at most %d bytes without '.', '..' and '//'",
			name[:min(len(name), maxPath)], meta.ErrInvalid, maxPath)
	}
	return nil
}
