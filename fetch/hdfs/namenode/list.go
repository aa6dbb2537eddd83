package namenode

import (
	"context"
	"fmt"
	"sync"

	"github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/proto"

	"rankfs/fetch/hdfs/message"
	"rankfs/meta"
)

// maxEntries is the most entries that HDFS allows in a directory.
const maxEntries = 6_400_000

// List calls each with the entries of a directory, in the namenode's order, by the bytes
// of names, those of 128 and more first. If located is set the entries have the blocks of
// files: a page of the listing, of about 1,000 blocks' replicas, takes one call, and the
// next page is on its way while each is called. A file is listed as one entry with an empty
// name. An error from each ends the listing and is returned.
func (c *Client) List(ctx context.Context, dir string, located bool, each func(Status) error) error {
	return c.ListAfter(ctx, dir, "", located, each)
}

// ListAfter is List of the names that come after one, which need not exist.
func (c *Client) ListAfter(ctx context.Context, dir, name string, located bool, each func(Status) error) error {
	if err := checkPath(dir); err != nil {
		return err
	}
	l := listing{client: c, dir: dir, located: located}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pages := make(chan page, 1)
	fetch := func(after []byte) { wg.Go(func() { pages <- l.page(ctx, after) }) }

	fetch([]byte(name))
	for seen := 0; ; {
		p := <-pages
		if seen += len(p.entries); p.err == nil && seen > maxEntries {
			p.err = l.problem(ctx, p.addr, fmt.Errorf("list of over %d entries %w", maxEntries, meta.ErrCorrupt))
		}
		if p.err != nil {
			return p.err
		}
		if p.left > 0 {
			fetch(p.last())
		}
		if err := l.tell(ctx, p, each); err != nil || p.left == 0 {
			return err
		}
	}
}

type listing struct {
	client  *Client
	dir     string
	located bool
}

// A page is a part of a directory's listing.
type page struct {
	entries []*hdfs.FileStatus
	left    uint64 // how many come behind it
	addr    string // of the namenode that it is from
	err     error
}

func (p page) last() []byte { return p.entries[len(p.entries)-1].GetPath() }

func (l listing) problem(ctx context.Context, addr string, err error) error {
	return l.client.problem(ctx, "getListing", l.dir, addr, err)
}

// page asks for the entries after a name.
func (l listing) page(ctx context.Context, after []byte) page {
	req := message.New("hdfs.GetListingRequestProto", message.Fields{"src": l.dir, "startAfter": after, "needLocation": l.located})
	resp := message.New("hdfs.GetListingResponseProto", nil)
	addr, err := l.client.call(ctx, "getListing", l.dir, req, resp)
	if err != nil {
		return page{err: err}
	}
	list := message.Part(resp, "dirList")
	if list == nil {
		return page{err: l.problem(ctx, addr, meta.ErrNotExist)}
	}
	p := pageOf(list)
	p.addr = addr
	if p.left > 0 && (len(p.entries) == 0 || string(p.last()) == string(after)) {
		return page{err: l.problem(ctx, addr, fmt.Errorf("list %w: it does not get on after %q", meta.ErrCorrupt, after))}
	}
	return p
}

func pageOf(list proto.Message) page {
	from := message.Get(list, "partialListing").List()
	p := page{entries: make([]*hdfs.FileStatus, from.Len()), left: message.Get(list, "remainingEntries").Uint()}
	for i := range p.entries {
		p.entries[i] = from.Get(i).Message().Interface().(*hdfs.FileStatus)
	}
	return p
}

// tell hands out the entries of a page.
func (l listing) tell(ctx context.Context, p page, each func(Status) error) error {
	for _, m := range p.entries {
		st, err := statusOf(m)
		if err == nil && l.located && m.GetLocations() != nil {
			st.Blocks, err = l.client.blocksOf(m, 0, st.Size)
		}
		if err != nil {
			return l.problem(ctx, p.addr, fmt.Errorf("%q: %w", m.GetPath(), err))
		}
		if err := each(st); err != nil {
			return err
		}
	}
	return nil
}
