package namenode

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"rankfs/fetch/hdfs/message"
)

// webCalls are the methods that WebHDFS has too. Each takes the request of the RPC
// method, and returns the response that RPC would give.
var webCalls = map[string]func(context.Context, *web, proto.Message) (proto.Message, error){
	"getFileInfo":       webStat,
	"getListing":        webList,
	"getBlockLocations": webLocate,
	"getServerDefaults": webDefaults,
}

// call is conn.call by WebHDFS.
func (w *web) call(ctx context.Context, method string, req proto.Message) ([]byte, error) {
	ask := webCalls[method]
	if ask == nil {
		return nil, &brokenError{fmt.Errorf("WebHDFS has no %s", method)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	resp, err := ask(ctx, w, req)
	if err != nil {
		return nil, err
	}
	b, err := proto.Marshal(resp)
	if err != nil {
		return nil, &brokenError{fmt.Errorf("reply leaves something out: %w", err)}
	}
	return protowire.AppendBytes(nil, b), nil
}

func webStat(ctx context.Context, w *web, req proto.Message) (proto.Message, error) {
	var told struct{ FileStatus webStatus }
	if err := w.get(ctx, "GETFILESTATUS", src(req), url.Values{}, &told); err != nil {
		return nil, err
	}
	m, err := told.FileStatus.message()
	if err != nil {
		return nil, err
	}
	return message.New("hdfs.GetFileInfoResponseProto", message.Fields{"fs": m}), nil
}

func webLocate(ctx context.Context, w *web, req proto.Message) (proto.Message, error) {
	m, err := w.locate(ctx, src(req), message.Get(req, "offset").Uint(), message.Get(req, "length").Uint())
	if err != nil {
		return nil, err
	}
	return message.New("hdfs.GetBlockLocationsResponseProto", message.Fields{"locations": m}), nil
}

// webSpan is how much of a file is located by one request. At HDFS's smallest
// blocks its reply has some 20 MiB.
const webSpan = 8 << 30

func (w *web) locate(ctx context.Context, path string, off, n uint64) (proto.Message, error) {
	var all webBlocks
	for at := off; ; {
		var told struct{ LocatedBlocks webBlocks }
		query := url.Values{"offset": {decimal(at)}, "length": {decimal(min(off+n-at, webSpan))}}
		if err := w.get(ctx, "GET_BLOCK_LOCATIONS", path, query, &told); err != nil {
			return nil, err
		}
		got := told.LocatedBlocks
		if at > off && got.FileLength != all.FileLength {
			return nil, &brokenError{fmt.Errorf("%q changed while it was located", path)}
		}
		got.LocatedBlocks = append(all.LocatedBlocks, got.LocatedBlocks...)
		all = got
		end := all.end()
		if end <= at || end >= min(off+n, all.FileLength) {
			return all.message()
		}
		at = end
	}
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func webDefaults(ctx context.Context, w *web, _ proto.Message) (proto.Message, error) {
	var told struct {
		FsServerDefaults struct {
			BlockSize           uint64
			BytesPerChecksum    uint32
			WritePacketSize     uint32
			Replication         uint32
			FileBufferSize      uint32
			EncryptDataTransfer webBool
			KeyProviderURI      string
		}
	}
	if err := w.get(ctx, "GETSERVERDEFAULTS", "/", url.Values{}, &told); err != nil {
		return nil, err
	}
	d := told.FsServerDefaults
	return message.New("hdfs.GetServerDefaultsResponseProto", message.Fields{"serverDefaults": message.New("hdfs.FsServerDefaultsProto", message.Fields{
		"blockSize": d.BlockSize, "bytesPerChecksum": d.BytesPerChecksum, "writePacketSize": d.WritePacketSize,
		"replication": d.Replication, "fileBufferSize": d.FileBufferSize,
		"encryptDataTransfer": bool(d.EncryptDataTransfer), "keyProviderUri": d.KeyProviderURI,
	})}), nil
}

func webList(ctx context.Context, w *web, req proto.Message) (proto.Message, error) {
	query := url.Values{}
	if after := message.Get(req, "startAfter").Bytes(); len(after) > 0 {
		query.Set("startAfter", string(after))
	}
	var told webListing
	if err := w.get(ctx, "LISTSTATUS_BATCH", src(req), query, &told); err != nil {
		return nil, err
	}
	located := message.Get(req, "needLocation").Bool()
	if located {
		told.cut(maxLocated)
	}
	list, entries, err := told.message()
	if err == nil && located {
		err = w.locateAll(ctx, src(req), told.entries(), entries)
	}
	if err != nil {
		return nil, err
	}
	return message.New("hdfs.GetListingResponseProto", message.Fields{"dirList": list}), nil
}

// maxLocated bounds the entries of a page of a listing that are located, maxLocating at a
// time, for a page to be told in a fraction of a call's time also from far away; the
// others are of the next page.
const maxLocated = 256

// locateAll says of the files of a page where they are.
func (w *web) locateAll(ctx context.Context, dir string, list []webStatus, entries []proto.Message) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		all   sync.WaitGroup
		slots = make(chan struct{}, maxLocating)
	)
	for i, st := range list {
		if st.Type != "FILE" {
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			blocks, err := w.locateOne(ctx, dir, st)
			if err != nil {
				cancel(err)
			}
			if blocks != nil {
				message.Set(entries[i], "locations", blocks)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return broken(context.Cause(ctx))
	}
	return nil
}

// locateOne asks for the blocks of a file that was just listed. If the file has been
// replaced or removed since, the listing and the blocks do not match, and the listing
// has to be made again. A file that the user may not read is listed without blocks.
func (w *web) locateOne(ctx context.Context, dir string, st webStatus) (proto.Message, error) {
	path := dir
	if st.PathSuffix != "" {
		path = strings.TrimSuffix(dir, "/") + "/" + st.PathSuffix
	}
	blocks, err := w.locate(ctx, path, 0, max(st.Length, 1))
	var remote *remoteError
	errors.As(err, &remote)
	switch {
	case remote != nil && remote.brief() == "FileNotFoundException":
		return nil, &brokenError{fmt.Errorf("%q went while its directory was listed", path)}
	case remote != nil && remote.brief() == "AccessControlException":
		return nil, nil
	case err == nil && message.Get(blocks, "fileLength").Uint() != st.Length && !message.Get(blocks, "underConstruction").Bool():
		return nil, &brokenError{fmt.Errorf("%q changed while its directory was listed", path)}
	}
	return blocks, err
}

// broken marks err as a fault of the way to the namenode and not of the call, unless
// err comes from the namenode.
func broken(err error) error {
	var already *brokenError
	if isFinal(err) || errors.As(err, &already) {
		return err
	}
	return &brokenError{err}
}

// src is the path that a request is about.
func src(req proto.Message) string { return message.Get(req, "src").String() }
