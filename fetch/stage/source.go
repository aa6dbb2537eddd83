// Package stage answers one question: what records does a sealed stage of the shuffle pool
// have, and what are their bytes?
//
// Its parts are the files of the index, in their order, and each is a chunk: a part that is
// merged is made as a whole, by the node that owns the chunk.
package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/pool"
	"rankfs/shuffle/record"
)

// A Pool has the stages of jobs. It is used concurrently.
type Pool interface {
	// Sealed is a stage of a job. The error wraps meta.ErrBusy if it is not sealed yet, and
	// meta.ErrNotExist if there is none.
	Sealed(ctx context.Context, job, name string) (*pool.Sealed, error)
}

// A Source is the parts of a stage.
type Source struct {
	pool      Pool
	job, name string
	sealed    *pool.Sealed // as it is attached, or was scanned last
}

// Open looks at nothing yet: the stage may be sealed, or healed, until it is read.
func Open(p Pool, job, name string) (*Source, error) {
	return &Source{pool: p, job: job, name: name}, nil
}

// Fingerprint implements fetch.Source.
func (s *Source) Fingerprint(ctx context.Context) (string, error) {
	now, err := s.pool.Sealed(ctx, s.job, s.name)
	if err != nil {
		return "", err
	}
	return now.Fingerprint(), nil
}

// Scan implements fetch.Source.
func (s *Source) Scan(ctx context.Context, b *index.Builder, done func(bytes, total int64)) (string, error) {
	is, err := s.pool.Sealed(ctx, s.job, s.name)
	if err != nil {
		return "", err
	}
	s.sealed = is
	fingerprint, total := is.Fingerprint(), is.Bytes()
	if !is.HasRecords() {
		b.Note("record", "each is what one map has of a part: the spec of the stage has no record=")
	}
	for number := range is.Len() {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		p, err := is.Part(ctx, number)
		if err != nil {
			return "", fmt.Errorf("stage %s/%s: %w", s.job, s.name, err)
		}
		file := b.AddFile(index.File{Path: meta.Part{Number: number}.String(), Size: p.Size()})
		b.BeginChunk(p.Hosts()...)
		err = p.Records(ctx, func(off, length int64, n uint64) error {
			if n == 1 {
				return b.Add(index.Extent{File: file, Off: off, Len: length})
			}
			return b.AddStride(file, off, length, n)
		})
		if err != nil {
			return "", fmt.Errorf("records of part %d of stage %s/%s: %w", number, s.job, s.name, err)
		}
		done(total/int64(is.Len())*int64(number), total) // about: what is combined becomes less
	}
	if err := is.Check(); err != nil {
		return "", err
	}
	done(total, total)
	return fingerprint, nil
}

// Stage is the stage that was scanned, which is kept while a dataset is made of it.
func (s *Source) Stage() (number, generation uint64) { return s.sealed.Stage() }

// Attach implements fetch.Source.
func (s *Source) Attach(ctx context.Context, x *index.Index, fingerprint string) error {
	now, err := s.pool.Sealed(ctx, s.job, s.name)
	switch {
	case errors.Is(err, meta.ErrBusy), errors.Is(err, meta.ErrNotExist):
		return fmt.Errorf("%w: %v", meta.ErrStale, err) // not busy: nothing that comes makes it what it was
	case err != nil:
		return err
	case now.Fingerprint() != fingerprint:
		return fmt.Errorf("stage %s/%s: %w: it was reset, or is another one", s.job, s.name, meta.ErrStale)
	case uint64(x.Files()) != now.Len():
		return fmt.Errorf("index of stage %s/%s %w: it has %d parts", s.job, s.name, meta.ErrCorrupt, x.Files())
	}
	s.sealed = now
	return nil
}

// Check implements fetch.Source.
func (s *Source) Check(ctx context.Context) error { return cmp.Or(ctx.Err(), s.sealed.Check()) }

// Read implements fetch.Source. What is wanted of a part is read at once.
func (s *Source) Read(ctx context.Context, extents []index.Extent, dst []byte) error {
	of := make(map[uint32]record.Windows)
	for _, e := range extents {
		if e.Len > 0 {
			of[e.File] = append(of[e.File], record.Window{Off: e.Off, To: dst[:e.Len]})
		}
		dst = dst[e.Len:]
	}
	for number, some := range of {
		slices.SortStableFunc(some, func(a, b record.Window) int { return cmp.Compare(a.Off, b.Off) })
		p, err := s.sealed.Part(ctx, uint64(number))
		if err == nil {
			err = p.Read(ctx, some)
		}
		if err != nil {
			if stale := s.sealed.Check(); stale != nil {
				return stale
			}
			return fmt.Errorf("part %d of stage %s/%s: %w", number, s.job, s.name, err)
		}
	}
	return s.Check(ctx)
}

// Close implements fetch.Source.
func (s *Source) Close() error { return nil }
