package hdfs

import (
	"context"
	"fmt"

	"rankfs/fetch/index"
)

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
	scan.kept.Remove()
	return version, nil
}
