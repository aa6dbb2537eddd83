package peers

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"rankfs/meta"
	"rankfs/meta/wire"
)

// MaxFound bounds what a node finds for another, and so the disk that it takes. It is
// the lines of an HDFS block where one has four bytes on the average; finer ones are
// found by the node that wants to know.
const MaxFound = 32 << 20

// findWait is how long a node may let such a request wait for its turn.
const findWait = time.Second

// A Finder looks through parts of sources that this node can reach, for the index that
// another node makes. What is to be found is said in words of the source. It returns a
// file, for the caller to close, and how long it is.
type Finder func(ctx context.Context, what []byte) (*os.File, int64, error)

// FindFor adds to calls the one by which other nodes have this one find something.
func FindFor(calls wire.Calls, find Finder) wire.Calls {
	calls[callFind] = func(ctx context.Context, q wire.Request, a wire.Answer) error {
		f, size, err := find(ctx, q.Body)
		if err != nil {
			return err
		}
		return send(ctx, f, size, a)
	}
	return calls
}

// Find has a node find what is said, and writes what it found to w. If that is not all
// there is an error, which may come when a part of it was written.
func (c *Client) Find(ctx context.Context, node string, what []byte, w io.Writer) error {
	if len(what) == 0 {
		return fmt.Errorf("ask node %s: request to find nothing %w", node, meta.ErrInvalid)
	}
	return c.wire.Pull(ctx, node, wire.Request{Call: callFind, Wait: findWait, Body: what}, newStream(w, MaxFound))
}
