package hdfs

import (
	"cmp"
	"context"
	"strings"

	"rankfs/fetch/index"
)

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
	return &Source{clusters: c, cluster: k, authority: authority, path: cmp.Or(strings.TrimRight(path, "/"), "/"), form: f}, nil
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
	if err := s.listedAs(ctx, fingerprint); err != nil {
		return err
	}
	s.index, s.places = x, newPlaces()
	s.watch = newWatch(s.look)
	s.where = newWhereabouts(s.cluster, x, s.form.together, s.clusters.config.Review)
	return nil
}

// look is a round of the watch, which begins with a file. After the last file all are listed
// once: another one may have come, which a node that lists them now has in the dataset.
func (s *Source) look(ctx context.Context, at int) (next int, err error) {
	if files := s.index.Files(); at < files {
		return s.cluster.compare(ctx, s.index, at, files)
	}
	return 0, s.listedAs(ctx, s.index.Fingerprint())
}

// listedAs returns a stale error unless the files are those of a version.
func (s *Source) listedAs(ctx context.Context, fingerprint string) error {
	now, err := s.Fingerprint(ctx)
	if err == nil && now != fingerprint {
		err = stale(s.path, "files came, went or changed")
	}
	return err
}
