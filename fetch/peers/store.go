package peers

import (
	"context"
	"io"
	"os"

	"rankfs/meta/wire"
)

// A Store serves this node's records and files to peers. It is called concurrently.
type Store interface {
	// Gather emits the bytes of runs of records, in that order, in pieces
	// of any length. A piece may be mapped memory: it is not used after
	// emit has returned. After an error of emit Gather returns it.
	Gather(ctx context.Context, dataset ID, runs []Run, emit func([]byte) error) error
	// Kept is Gather for what need not be fetched first: meta.ErrBusy if it
	// would have to be.
	Kept(ctx context.Context, dataset ID, runs []Run, emit func([]byte) error) error
	// File opens a file by its hash, for the caller to close, and says how
	// long it is.
	File(ctx context.Context, hash ID) (*os.File, int64, error)
}

// Calls answers other nodes out of a store.
func Calls(s Store) wire.Calls {
	return wire.Calls{
		callRecords: func(ctx context.Context, q wire.Request, a wire.Answer) error { return records(ctx, s, q, a) },
		callFile:    func(ctx context.Context, q wire.Request, a wire.Answer) error { return file(ctx, s, q, a) },
	}
}

func records(ctx context.Context, s Store, q wire.Request, a wire.Answer) error {
	if len(q.Runs) == 0 {
		return errNoRuns
	}
	if q.Kept {
		return s.Kept(ctx, q.ID, q.Runs, a.Emit)
	}
	return s.Gather(ctx, q.ID, q.Runs, a.Emit)
}

func file(ctx context.Context, s Store, q wire.Request, a wire.Answer) error {
	f, size, err := s.File(ctx, q.ID)
	if err != nil {
		return err
	}
	return send(ctx, f, size, a)
}

// send answers with size bytes of a file, and closes it.
func send(ctx context.Context, f *os.File, size int64, a wire.Answer) error {
	defer f.Close()
	a.Size(uint64(size))
	return wire.From(io.NewSectionReader(f, 0, size))(ctx, a.Emit)
}
