package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"rankfs/fetch/index"
	"rankfs/fetch/lmdb"
	"rankfs/meta"
)

// An LMDB is one database of an LMDB file in HDFS. Its records are read from a
// copy on a local disk; the file is only watched. It implements fetch.Source.
type LMDB struct {
	clusters *Clusters
	source   *Source // of the file's bytes
	db       string

	copied *copied     // held since Copy, Scan or Attach
	data   *lmdb.Still // in it
	watch  *watch      // since Attach
}

// OpenLMDB returns the database of that name in the file, or in data.mdb in the
// directory, at a path of the cluster that authority names. It does no I/O.
func (c *Clusters) OpenLMDB(authority, path, db string) (*LMDB, error) {
	k, err := c.cluster(authority)
	if err != nil {
		return nil, err
	}
	path = cmp.Or(strings.TrimRight(path, "/"), "/")
	return &LMDB{clusters: c, source: &Source{clusters: c, cluster: k, path: path}, db: db}, nil
}

// Retain sets the datasets that exist, by their fingerprints. Copies that belong to
// none of them are removed once they have no reader.
func (c *Clusters) Retain(fingerprints []string) {
	if c.config.Copies == nil {
		return
	}
	keys := make(map[string]bool)
	for _, f := range fingerprints {
		rest, ok := strings.CutPrefix(f, "lmdb,copy=")
		if key, _, _ := strings.Cut(rest, ","); ok {
			keys[key] = true
		}
	}
	c.config.Copies.Retain(keys)
}

func (s *LMDB) fingerprint(key string) string { return fmt.Sprintf("lmdb,copy=%s,db=%q", key, s.db) }

// original asks the namenode for the file's status, and returns the key of its copy.
func (s *LMDB) original(ctx context.Context) (f file, key string, err error) {
	names, p := s.source.cluster.names, s.source.path
	st, err := names.Stat(ctx, p)
	if err == nil && st.Dir {
		p = path.Join(p, "data.mdb")
		st, err = names.Stat(ctx, p)
	}
	f = file{p, st}
	switch {
	case err != nil:
		return f, "", err
	case st.Dir || st.Link != "" || st.Size == 0:
		return f, "", meta.Worded(meta.ErrInvalid, "%q cannot be an LMDB: it is no file, or an empty one", p)
	}
	if err := f.refuse(); err != nil {
		return f, "", err
	}
	first, err := names.Locate(ctx, p, 0, 1)
	if err == nil && len(first.Blocks) == 0 {
		err = stale(p, "it has no blocks any more")
	}
	if err != nil {
		return f, "", err
	}
	return f, keyOf(first.Blocks[0].Pool, f), nil
}

// Fingerprint implements fetch.Source.
func (s *LMDB) Fingerprint(ctx context.Context) (string, error) {
	_, key, err := s.original(ctx)
	if err != nil {
		return "", s.source.gone(err)
	}
	return s.fingerprint(key), nil
}

// Copy brings the file to the local disk, unless it is there, and calls done now
// and then with the bytes that are. Scan does the same untold.
func (s *LMDB) Copy(ctx context.Context, done func(bytes, total int64)) error {
	f, key, err := s.original(ctx)
	if err != nil {
		return err
	}
	return s.hold(key, f, func(all Copies) (Copy, error) {
		if err := s.look(ctx, f); err != nil {
			return nil, err
		}
		return all.Take(ctx, key, f.Size, s.source.copying(f), func(bytes int64) { done(bytes, f.Size) })
	})
}

// pagesLooked bounds the pages that are read to see whether there is a database: a
// file with names has few others in the way, and each is a request to a datanode.
const pagesLooked = 64

// look reads a few pages in HDFS, to refuse a file that is plainly no LMDB or has no
// such database before a useless copy is made.
func (s *LMDB) look(ctx context.Context, f file) error {
	pages := &limitedReads{readerAt{s.source, ctx, f.path, f.Size}, pagesLooked}
	err := lmdb.CheckDatabase(ctx, pages, f.path, f.Size, s.db)
	if errors.Is(err, errTooMany) {
		return nil // the scan will tell
	}
	return err
}

// limitedReads is a file that allows so many reads.
type limitedReads struct {
	readerAt
	left int
}

var errTooMany = errors.New("too many pages were looked at")

func (r *limitedReads) ReadAt(p []byte, off int64) (int, error) {
	if r.left--; r.left < 0 {
		return 0, errTooMany
	}
	return r.readerAt.ReadAt(p, off)
}

// hold makes sure that the source has the copy of that key, and no other one.
func (s *LMDB) hold(key string, f file, take func(Copies) (Copy, error)) error {
	all := s.clusters.config.Copies
	if all == nil {
		return meta.Worded(meta.ErrInvalid, "as=lmdb cannot be had here: the file is read from a copy on a local disk; mount with --nvme DIR:SIZE")
	}
	if s.copied != nil && s.copied.key == key {
		return nil
	}
	s.release()
	c, err := take(all)
	if errors.Is(err, meta.ErrBusy) {
		err = fmt.Errorf("%q %w", f.path, err)
	}
	if err != nil {
		return err
	}
	k := &copied{c, key, s.source, f}
	if s.data, err = lmdb.OpenStill(c.File(), k); err != nil {
		c.Release()
		return err
	}
	s.copied = k
	return nil
}

func (s *LMDB) release() {
	if s.copied != nil {
		s.data.Close()
		s.copied.Release()
		s.copied, s.data = nil, nil
	}
}

// Scan implements fetch.Source.
func (s *LMDB) Scan(ctx context.Context, b *index.Builder, done func(bytes, total int64)) (string, error) {
	if err := s.Copy(ctx, func(int64, int64) {}); err != nil {
		return "", err
	}
	f := s.copied.of
	as := index.File{Path: f.path, Size: f.Size, Stamp: f.stamp()}
	if err := s.data.Scan(ctx, s.db, b, as, done); err != nil {
		return "", err
	}
	now, err := s.Fingerprint(ctx)
	if err == nil && now != s.fingerprint(s.copied.key) {
		err = stale(f.path, "it changed while it was read")
	}
	return now, err
}

// Attach implements fetch.Source. If the copy is not there, it is begun, and the
// error wraps meta.ErrBusy until it is whole.
func (s *LMDB) Attach(ctx context.Context, x *index.Index, fingerprint string) error {
	f, key, err := s.original(ctx)
	if err != nil {
		return s.source.gone(err)
	}
	if s.fingerprint(key) != fingerprint {
		return stale(s.source.path, "it was written anew, appended to or replaced")
	}
	if x.Files() != 1 || x.File(0).Size != f.Size {
		return fmt.Errorf("attach %q: the index is of another file: it %w", f.path, meta.ErrCorrupt)
	}
	err = s.hold(key, f, func(all Copies) (Copy, error) {
		return all.Take(ctx, key, f.Size, s.source.copying(f), nil)
	})
	if err != nil {
		return err
	}
	s.watch = newWatch(func(ctx context.Context, _ int) (int, error) {
		return 0, s.source.cluster.verify(ctx, x.File(0))
	})
	return nil
}

// Check implements fetch.Source. It notices a changed file within a second or two;
// until then reads return the attached version.
func (s *LMDB) Check(ctx context.Context) error {
	return cmp.Or(ctx.Err(), s.watch.state())
}

// Read implements fetch.Source. The copy does not change, so the namenode is not asked.
func (s *LMDB) Read(ctx context.Context, extents []index.Extent, dst []byte) error {
	if err := s.copied.trust(ctx, extents); err != nil {
		return err
	}
	err := s.data.Read(ctx, extents, dst)
	return errors.Join(err, s.watch.state())
}

// Close implements fetch.Source.
func (s *LMDB) Close() error {
	if s.watch != nil {
		s.watch.close()
		s.watch = nil
	}
	s.release()
	return nil
}
