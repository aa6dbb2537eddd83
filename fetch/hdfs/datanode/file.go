package datanode

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/meta/stall"
)

// A file is a replica on this host that is read by its datanode's own files.
type file struct {
	client *Client
	open   *shortcircuit.File
	at     int64 // in the block, up to which it has read
}

// openFile opens a replica by its files, if that can be.
func (c *Client) openFile(ctx context.Context, b namenode.Block, r namenode.Replica, from int64) (*file, error) {
	open, err := c.config.Files.Open(ctx, shortcircuit.Block{
		Pool: b.Pool, ID: b.ID, Stamp: b.Stamp, Size: b.Size, Addr: r.Addr,
		Header: part(b.Message, "b"), Token: part(b.Message, "blockToken"),
	})
	if err != nil {
		return nil, err
	}
	return &file{c, open, from}, nil
}

// fill reads p in full.
func (f *file) fill(p []byte) error {
	if err := f.open.ReadAt(p, f.at); err != nil {
		f.open.Fail(err)
		return err
	}
	f.at += int64(len(p))
	f.client.cameByFile(uint64(len(p)))
	return nil
}

func (c *Client) cameByFile(bytes uint64) {
	c.bytes.Add(bytes)
	c.local.Add(bytes)
	c.files.Add(bytes)
}

func (f *file) way() stall.Cause { return stall.ByFile }

func (f *file) close() { f.open.Release() }

// part is a message in another, nil if there is none.
func part(m proto.Message, name protoreflect.Name) proto.Message {
	r := m.ProtoReflect()
	if f := r.Descriptor().Fields().ByName(name); r.Has(f) {
		return r.Get(f).Message().Interface()
	}
	return nil
}
