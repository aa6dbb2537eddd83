package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"rankfs/fetch/index"
	"rankfs/meta"
)

// A Source is a dataset in HDFS. It implements fetch.Source.
type Source struct {
	clusters *Clusters
	cluster  *cluster
	path     string
	form     form         // none, if it depends on whether the path is a file
	earlier  *index.Index // of an earlier version, for Scan; may be nil

	// Set by Attach.
	index  *index.Index
	watch  *watch
	where  *whereabouts
	places *places
}

// A form is a way to divide files into records.
type form struct {
	name string
	// scan adds the records of all files.
	scan func(ctx context.Context, s *scan) error
	// read reads the part of a read that is in one file.
	read func(ctx context.Context, s *Source, j job) error
}

// Open returns the source at a path of the cluster that authority names:
// HOST:PORT, a nameservice, or nothing for the default of the configuration.
// As is lines, chunks of them, fixed:N, files or sequence; if empty, lines for a file
// and files for a directory or a pattern. It does no I/O.
func (c *Clusters) Open(authority, path, as string) (*Source, error) {
	if as == "files" {
		as = wholeFiles
	}
	f, err := formOf(as)
	if as == "" {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	k, err := c.cluster(authority)
	if err != nil {
		return nil, err
	}
	return &Source{clusters: c, cluster: k, path: cmp.Or(strings.TrimRight(path, "/"), "/"), form: f}, nil
}

// formOf returns the form of a name, which is that of a fingerprint too.
func formOf(as string) (form, error) {
	number, isFixed := strings.CutPrefix(as, "fixed:")
	switch {
	case as == "lines":
		return lines(), nil
	case as == "chunks":
		return lineChunks(), nil
	case as == "files" || as == wholeFiles:
		return whole(as), nil
	case as == "sequence":
		return sequences(), nil
	case isFixed:
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 || n > 1<<48-1 {
			return form{}, fmt.Errorf("as=%s %w: use a number of bytes, as fixed:4096", as, meta.ErrInvalid)
		}
		return fixed(n), nil
	}
	return form{}, fmt.Errorf("as=%s %w: use lines, fixed:N, files, sequence or lmdb", as, meta.ErrInvalid)
}

// Fingerprint implements fetch.Source. It asks for the state of every file.
func (s *Source) Fingerprint(ctx context.Context) (string, error) {
	l, err := s.list(ctx, false)
	if err != nil {
		return "", s.gone(err)
	}
	return l.fingerprint(), nil
}

// gone is err, marked as stale if it says that there is nothing.
func (s *Source) gone(err error) error {
	if errors.Is(err, meta.ErrNotExist) {
		return stale(s.path, err.Error())
	}
	return err
}

// Scan implements fetch.Source. It lists the files before and after; the index is of a
// version only if both listings are the same.
func (s *Source) Scan(ctx context.Context, b *index.Builder, done func(bytes, total int64)) (string, error) {
	l, err := s.list(ctx, true)
	if err != nil {
		return "", err
	}
	version := l.fingerprint()
	if l.passed > 0 {
		b.Note("left out", fmt.Sprintf("not served: %d names that begin with a dot or an underscore, or are links", l.passed))
	}
	for host, rack := range l.racks {
		b.Rack(host, rack)
	}
	scan := newScan(s, l.files, version, b, done)
	if err := s.form.scan(ctx, scan); err != nil {
		return "", fmt.Errorf("scan %q: %w", s.path, err)
	}
	again, err := s.Fingerprint(ctx)
	if err != nil {
		return "", err
	}
	if again != version {
		return "", stale(s.path, "files came, went or changed while they were read")
	}
	done(scan.total, scan.total)
	scan.forget()
	return version, nil
}

// ByChunk makes Scan look only for the beginnings of chunks, if the records are lines:
// a chunk is then one record, and its lines are not counted. It reports whether Scan
// does so.
func (s *Source) ByChunk(ctx context.Context) (bool, error) {
	if s.form.name == "" {
		if _, err := s.list(ctx, false); err != nil {
			return false, err
		}
	}
	if s.form.name == "lines" {
		s.form = lineChunks()
	}
	return s.form.name == "chunks", nil
}

// Attach implements fetch.Source.
func (s *Source) Attach(ctx context.Context, x *index.Index, fingerprint string) error {
	name, _, _ := strings.Cut(fingerprint, ",")
	var err error
	if s.form, err = formOf(name); err != nil {
		return stale(s.path, "its index is of a kind that is not known")
	}
	now, err := s.Fingerprint(ctx)
	if err != nil {
		return err
	}
	if now != fingerprint {
		return stale(s.path, "files came, went or changed")
	}
	s.index, s.places = x, newPlaces()
	s.watch = newWatch(s.cluster, x)
	s.where = newWhereabouts(s.cluster, x, strings.HasPrefix(name, "files"), s.clusters.config.Review)
	return nil
}

// Hosts returns the hosts that hold a chunk now, which may be none, or nil if
// they are those of the index. It makes no call.
func (s *Source) Hosts(chunk int) []string { return s.where.hosts(chunk) }

// Check implements fetch.Source. It makes no call: a goroutine asks the namenode now
// and then (watch.go), so opens put no load on it, and go on when it is away.
func (s *Source) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.watch.state()
}

// Close implements fetch.Source.
func (s *Source) Close() error {
	if s.watch != nil {
		s.watch.close()
		s.where.close()
		s.watch = nil
	}
	return nil
}
