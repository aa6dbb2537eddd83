package fetch

import (
	"context"

	"rankfs/fetch/index"
)

// A Source is a place where records are kept: an LMDB database, a file of
// lines, a tree of files.
//
// Fingerprint, Check and Read may be called concurrently once Open returned.
// A source is opened read-only and never written to.
type Source interface {
	// Fingerprint identifies the content as it stands now: sizes, times,
	// inode numbers, transaction ids. Equal fingerprints mean equal bytes.
	Fingerprint(ctx context.Context) (string, error)

	// Scan adds every record, chunk by chunk, to b and returns the
	// fingerprint of exactly the version it scanned, or an error wrapping
	// meta.ErrStale if the source changed meanwhile. It calls done now and
	// then with the bytes scanned so far and the bytes in all.
	Scan(ctx context.Context, b *index.Builder, done func(bytes, total int64)) (string, error)

	// Attach prepares to serve the records of x, which was made by Scan when
	// the fingerprint was the one given. It returns an error wrapping
	// meta.ErrStale if the source is no longer that version.
	Attach(ctx context.Context, x *index.Index, fingerprint string) error

	// Check returns an error wrapping meta.ErrStale if the source is known
	// to be no longer the attached version. It is cheap: a stat or two.
	Check(ctx context.Context) error

	// Read fills dst, whose length is the sum of the extents' lengths, with
	// their bytes one after another. It never returns short and never
	// returns bytes of another version than the attached one: it looks for
	// a change after the copy too. It does not keep dst. A source whose
	// file was truncated may fault; the caller turns that into an error.
	Read(ctx context.Context, extents []index.Extent, dst []byte) error

	// Close releases the resources of Open and Attach. No Read is under way.
	Close() error
}
