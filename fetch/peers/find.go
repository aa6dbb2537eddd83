package peers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"rankfs/fetch/uri"
	"rankfs/meta"
	"rankfs/meta/wire"
)

// MaxFound bounds what a node finds for another, and takes of what another has found for it. It is
// enough for the lines of an HDFS block that have four bytes on the average; a node that asks
// for shorter ones finds them itself.
const MaxFound = 32 << 20

// findWait is how long a node may let such a request wait for its turn.
const findWait = time.Second

// A Finder looks through a split of a source that this node can reach, for the index that
// another node makes. What is to be found is said in words of sources of that scheme. It
// returns a file, for the caller to close, and how long it is.
type Finder func(ctx context.Context, scheme string, what []byte) (*os.File, int64, error)

// FindFor has the two calls by which other nodes have this one look through a split: that of
// a release that does so for HDFS alone, and names no scheme, and one that names it. A node of
// that release refuses the second, and so takes no request of another source for one of HDFS.
func FindFor(find Finder) wire.Calls {
	answer := func(ctx context.Context, scheme string, what []byte, a wire.Answer) error {
		f, size, err := find(ctx, scheme, what)
		if err != nil {
			return err
		}
		return send(ctx, f, size, a)
	}
	return wire.Calls{
		callFind: func(ctx context.Context, q wire.Request, a wire.Answer) error {
			return answer(ctx, uri.HDFS, q.Body, a)
		},
		callFindIn: func(ctx context.Context, q wire.Request, a wire.Answer) error {
			scheme, what, _ := bytes.Cut(q.Body, []byte{'\n'})
			return answer(ctx, string(scheme), what, a)
		},
	}
}

// Find has a node find what is said of sources of a scheme, and writes what it found to w. If
// that is not all there is an error, which may come when a part of it was written.
func (c *Client) Find(ctx context.Context, node, scheme string, what []byte, w io.Writer) error {
	if len(what) == 0 {
		return fmt.Errorf("ask node %s: request to find nothing %w", node, meta.ErrInvalid)
	}
	q := wire.Request{Call: callFind, Wait: findWait, Body: what}
	if scheme != uri.HDFS {
		q.Call, q.Body = callFindIn, append([]byte(scheme+"\n"), what...)
	}
	return c.wire.Pull(ctx, node, q, newStream(w, MaxFound))
}
