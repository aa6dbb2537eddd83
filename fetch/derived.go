package fetch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"rankfs/fetch/index"
	"rankfs/fetch/uri"
	"rankfs/meta"
)

// A derived source has records of another dataset, where they stand: an index of its own
// says which, and its bytes are read from the source of that dataset. It is of the
// version of the dataset that it was opened with, and stale as soon as there is another.
// The lock is held while that source is opened, once for all that need it, and not taken
// to ask one that is there.
type derived struct {
	uri  uri.URI
	env  *Env
	base Base
	open func() (Source, error) // opens the base's

	opening sync.Mutex
	of      atomic.Pointer[Source] // the base's; nil until it is needed: this node may have the index alone
}

// openDerived opens a source that is made of another dataset. Open opens the source of that,
// by its URI.
func openDerived(u uri.URI, env *Env, open func(text string, env *Env) (Source, error)) (*derived, error) {
	if env.Base == nil {
		return nil, fmt.Errorf("dataset %s %w: there are no datasets here", u.Base, meta.ErrInvalid)
	}
	base, err := env.Base(u.Base)
	if err != nil {
		return nil, err
	}
	return &derived{uri: u, env: env, base: base, open: func() (Source, error) { return open(base.Source, env) }}, nil
}

// derivedFrom begins the fingerprint of a derived source. It is followed by the version of
// the base, a semicolon, and the fingerprint of the base's source.
const derivedFrom = "dataset="

func (d *derived) prefix() string { return derivedFrom + d.base.Version + ";" }

// SourceFingerprint is the fingerprint of the source that bytes are read from, of that of
// a source that may be made of another dataset.
func SourceFingerprint(fingerprint string) string {
	for strings.HasPrefix(fingerprint, derivedFrom) {
		_, fingerprint, _ = strings.Cut(fingerprint, ";")
	}
	return fingerprint
}

// source is the source of the base.
func (d *derived) source() (Source, error) {
	if of := d.of.Load(); of != nil {
		return *of, nil
	}
	d.opening.Lock()
	defer d.opening.Unlock()
	if of := d.of.Load(); of != nil {
		return *of, nil
	}
	of, err := d.open()
	if err != nil {
		return nil, fmt.Errorf("%w: dataset %s: %w", meta.ErrStale, d.uri.Base, err)
	}
	d.of.Store(&of)
	return of, nil
}

// Fingerprint implements Source.
func (d *derived) Fingerprint(ctx context.Context) (string, error) {
	of, err := d.source()
	if err != nil {
		return "", err
	}
	now, err := of.Fingerprint(ctx)
	return d.prefix() + now, err
}

// Scan implements Source. It reads the index of the base and no other byte.
func (d *derived) Scan(ctx context.Context, b *index.Builder, done func(bytes, total int64)) (string, error) {
	if err := d.current(); err != nil {
		return "", err
	}
	if err := d.base.Check(ctx); err != nil {
		return "", fmt.Errorf("dataset %s: %w", d.uri.Base, err)
	}
	x := d.base.Index
	from, to := d.uri.From, min(d.uri.To, x.Records())
	switch {
	case from >= to && from > 0:
		return "", fmt.Errorf("range of records from %d on %w: dataset %s has %d", from, meta.ErrInvalid, d.uri.Base, x.Records())
	case to < d.uri.To && d.uri.To != math.MaxUint64:
		return "", fmt.Errorf("range of records %d-%d %w: dataset %s has %d; use records=%d- for all from there on",
			from, d.uri.To-1, meta.ErrInvalid, d.uri.Base, x.Records(), from)
	}
	for i := range x.Files() {
		b.AddFile(x.File(uint32(i)))
	}
	for host, rack := range x.Racks() {
		b.Rack(host, rack)
	}
	for _, key := range slices.Sorted(maps.Keys(x.Notes())) {
		b.Note(key, x.Notes()[key])
	}
	total := x.Bytes()
	for i := range x.Chunks() {
		c := x.Chunk(i)
		first, end := max(c.First, from), min(c.First+c.Records, to)
		if first >= end {
			continue
		}
		b.BeginChunk(c.Hosts...)
		if err := cmp.Or(ctx.Err(), b.Copy(x, first, end-first)); err != nil {
			return "", err
		}
		done(b.Bytes(), total)
	}
	done(total, total)
	return d.prefix() + x.Fingerprint(), ctx.Err()
}

// Attach implements Source.
func (d *derived) Attach(ctx context.Context, x *index.Index, fingerprint string) error {
	rest, is := strings.CutPrefix(fingerprint, d.prefix())
	if !is {
		return d.stale()
	}
	of, err := d.source()
	if err != nil {
		return err
	}
	return of.Attach(ctx, x, rest)
}

// Check implements Source. What the base is made of is looked at too.
func (d *derived) Check(ctx context.Context) error {
	if err := d.current(); err != nil {
		return err
	}
	of, err := d.source()
	if err != nil {
		return err
	}
	return of.Check(ctx)
}

// current reports whether the version of the base is the one that it was opened with.
func (d *derived) current() error {
	now, err := d.env.Base(d.uri.Base)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", meta.ErrStale, err)
	case now.Version != d.base.Version:
		return d.stale()
	}
	return nil
}

func (d *derived) stale() error {
	return fmt.Errorf("dataset %s, of which it is made: %w: it was indexed again", d.uri.Base, meta.ErrStale)
}

// Read implements Source.
func (d *derived) Read(ctx context.Context, extents []index.Extent, dst []byte) error {
	of, err := d.source()
	if err != nil {
		return err
	}
	return of.Read(ctx, extents, dst)
}

// Hosts are the hosts that the base's source knows of, for chunks of the index that is
// attached.
func (d *derived) Hosts(chunk int) []string {
	of, err := d.source()
	if moving, ok := of.(interface{ Hosts(chunk int) []string }); err == nil && ok {
		return moving.Hosts(chunk)
	}
	return nil
}

// Close implements Source.
func (d *derived) Close() error {
	if of := d.of.Load(); of != nil {
		return (*of).Close()
	}
	return nil
}
