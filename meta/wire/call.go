package wire

import (
	"context"
	"fmt"

	"rankfs/meta"
)

// Calls are what other nodes can ask for, by their numbers, which never change
// their meaning: nodes of several releases talk to each other. They are called
// concurrently.
type Calls map[uint8]Call

// A Call answers a request, which it checks but for the bounds of all requests.
// After an error of Answer it returns that.
type Call func(ctx context.Context, q Request, a Answer) error

// Pushes are the calls by which other nodes send something to this one. Their numbers
// are none of Calls.
type Pushes map[uint8]Push

// A Push takes what the other node sends, of which there are q.Bytes, or any number if
// that is 0. It succeeds only after it has read all, to io.EOF, or nothing: then there is
// no need to send it. Its result is up to MaxResult bytes, for the other node.
type Push func(ctx context.Context, q Request, in *Stream) (result []byte, err error)

// A handler handles the requests of a number.
type handler struct {
	gate   *gate
	do     func(ctx context.Context, q Request, in *Stream, a Answer) error
	pushed bool // the bytes of its requests are what it reads, not what it answers
}

// do calls p, and answers with its result.
func (p Push) do(ctx context.Context, q Request, in *Stream, a Answer) error {
	result, err := p(ctx, q, in)
	if err = in.outcome(err); err != nil || len(result) == 0 {
		return err
	}
	if len(result) > MaxResult {
		return fmt.Errorf("result of %d bytes %w: %d at most", len(result), meta.ErrInvalid, MaxResult)
	}
	a.Size(uint64(len(result)))
	return a.Emit(result)
}
