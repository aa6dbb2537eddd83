package lmdb

import (
	"context"
	"errors"
	"fmt"
	"os"

	"rankfs/fetch/index"
	"rankfs/meta"
)

// chunkBytes is where a chunk ends. At 1 GB/s a chunk takes 60 ms, against
// which a request to a peer or a disk is nothing; a terabyte has 16 thousand
// chunks, which every node can keep a table of. It ends at a record and not at
// a leaf: a leaf leads to 150 values however large they are.
const chunkBytes = 64 << 20

// A Source is one database of an LMDB file. All methods but Scan, Attach and
// Close may be called concurrently.
type Source struct {
	db    string
	place place
	holds *Holds

	scanned  *snapshot // what Scan saw, until Attach takes it over
	attached *snapshot
	values   *reader // of attached
}

// Open opens the database at path: a directory with data.mdb in it, or a
// single file. The name of a database in it may be empty. All sources of a
// process must be given the same holds; with nil no lock file is touched, and
// a source that a writer commits to is stale at once.
func Open(path, db string, holds *Holds) (*Source, error) {
	at, err := locate(path)
	if err != nil {
		return nil, err
	}
	f, err := openData(at)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := readHead(f, f.Name()); err != nil {
		return nil, fmt.Errorf("open lmdb: %w", err)
	}
	return &Source{db: db, place: at, holds: holds}, nil
}

// Fingerprint identifies the newest snapshot of the file now at the path.
func (s *Source) Fingerprint(ctx context.Context) (string, error) {
	f, err := openData(s.place)
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, v, _, err := observe(f)
	return s.fingerprint(v), err
}

// fingerprint tells the databases of a file apart, too: their records stand in
// the same file, and are others.
func (s *Source) fingerprint(v version) string {
	if s.db == "" {
		return v.String()
	}
	return fmt.Sprintf("%v db=%q", v, s.db)
}

// Scan adds the records of the newest snapshot to b. It holds the snapshot if
// it can, and the hold is kept for an Attach to the same fingerprint, so that
// a dataset can be indexed and served while a writer never rests. Progress is
// counted in bytes of the pages that are read, which the values mostly are
// not in.
func (s *Source) Scan(ctx context.Context, b *index.Builder, done func(bytes, total int64)) (string, error) {
	snap, err := take(s.place, s.holds)
	if err != nil {
		return "", err
	}
	if err := s.scan(ctx, snap, b, done); err != nil {
		return "", errors.Join(snap.explain(err), snap.close())
	}
	old := s.scanned
	s.scanned = snap
	if err := old.close(); err != nil {
		return "", err
	}
	return s.fingerprint(snap.version), nil
}

func (s *Source) scan(ctx context.Context, snap *snapshot, b *index.Builder, done func(bytes, total int64)) error {
	w := newWalker(snap.file, snap.data, snap.version.size, snap.head)
	fd := int(snap.file.Fd())
	w.ask = func(at, n int64) { willNeed(fd, at, at+n) }
	if err := w.scan(ctx, s.db, b, index.File{Path: snap.data, Size: snap.version.size}, done); err != nil {
		return err
	}
	return snap.intact()
}

// scan adds the records of a database to b, as being in the file as.
func (w *walker) scan(ctx context.Context, db string, b *index.Builder, as index.File, done func(bytes, total int64)) error {
	t, err := w.database(ctx, db)
	if err != nil {
		return err
	}
	file := b.AddFile(as)
	chunk := int64(chunkBytes)
	var read, total int64 = 0, int64(min(t.leaves, w.pages())) * w.head.page
	err = w.records(ctx, t, func(spans []span) error {
		for _, v := range spans {
			if chunk >= chunkBytes {
				b.BeginChunk()
				chunk = 0
				done(min(read, total), total)
			}
			if err := b.Add(index.Extent{File: file, Off: v.off, Len: v.length}); err != nil {
				return err
			}
			chunk += v.length
		}
		read += w.head.page
		return nil
	})
	if err == nil {
		done(total, total)
	}
	return err
}

// Attach holds the snapshot, if it can, for as long as the source is open. It must be the newest, or the one that Scan just saw.
func (s *Source) Attach(ctx context.Context, x *index.Index, fingerprint string) error {
	if s.attached != nil {
		return fmt.Errorf("attach lmdb %s: it is attached already", s.place.data)
	}
	snap := s.scanned
	s.scanned = nil
	if snap == nil || s.fingerprint(snap.version) != fingerprint || snap.intact() != nil {
		var err error
		if err = snap.close(); err == nil {
			snap, err = take(s.place, s.holds)
		}
		if err != nil {
			return err
		}
	}
	if err := s.suits(snap, x, fingerprint); err != nil {
		return errors.Join(err, snap.close())
	}
	s.attached, s.values = snap, newReader(snap.file, snap.data, snap.version.size, snap.head.page)
	return nil
}

// suits returns nil if x is an index of the snapshot.
func (s *Source) suits(snap *snapshot, x *index.Index, fingerprint string) error {
	if s.fingerprint(snap.version) != fingerprint {
		return snap.stale("%s", parseVersion(fingerprint).change(snap.version))
	}
	if x.Files() != 1 || x.File(0).Size != snap.version.size {
		return fmt.Errorf("attach lmdb %s: the index is of another file: it %w", snap.data, meta.ErrCorrupt)
	}
	return nil
}

// Check looks whether the path still names the attached file, and whether the
// snapshot is intact. It takes two stats and two small reads.
func (s *Source) Check(ctx context.Context) error {
	info, err := os.Stat(s.place.data)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("lmdb %s: %w", s.place.data, meta.ErrGone)
	case err != nil:
		return s.attached.stale("%w", err)
	}
	mine, err := s.attached.file.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, mine) {
		return s.attached.stale("another file stands at its path")
	}
	return s.attached.intact()
}

// Read reads the values into dst. While the file is cached it copies them from
// a mapping, and faults if the file is truncated meanwhile.
func (s *Source) Read(ctx context.Context, extents []index.Extent, dst []byte) error {
	if err := s.values.read(ctx, extents, dst); err != nil {
		return s.attached.explain(err)
	}
	return s.attached.intact()
}

// Close lets go of the snapshot.
func (s *Source) Close() error {
	if s.values != nil {
		s.values.warm.Close()
	}
	err := errors.Join(s.attached.close(), s.scanned.close())
	s.values, s.attached, s.scanned = nil, nil, nil
	return err
}
