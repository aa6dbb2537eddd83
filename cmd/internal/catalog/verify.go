package catalog

import (
	"cmp"
	"context"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/control"
	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// Verify reads every record back, in the source's order.
func (d *Dataset) Verify(ctx context.Context, report Reporter) (control.Verification, error) {
	source := &d.Version.Source
	data, err := source.Data(ctx)
	if err != nil && source.Elsewhere() != "" {
		err = cmp.Or(source.Check(ctx), meta.Worded(meta.ErrUnavailable, "its source is on host %s alone; verify it there", source.Host("")))
	}
	if err != nil {
		return control.Verification{}, d.reindex(err)
	}
	room, err := unix.Mmap(-1, 0, verifyBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return control.Verification{}, err
	}
	defer unix.Munmap(room)
	v := &verifier{data: data, room: room, hash: xxhash.New(), report: report, total: d.Version.Index.Bytes()}
	for i := range d.Version.Index.Records() {
		if err := v.add(ctx, d.Version.Index.Extent(i)); err != nil {
			return v.read, d.reindex(err)
		}
		v.read.Records++
	}
	if err := v.flush(ctx); err != nil {
		return v.read, d.reindex(err)
	}
	v.read.Checksum = fmt.Sprintf("xxh64:%016x", v.hash.Sum64())
	return v.read, nil
}

// Bounds of one read of extents.
const (
	verifyBytes   = 8 << 20
	verifyExtents = 4096
)

// A verifier reads extents one after the other, many at a time.
type verifier struct {
	data    *fetch.Dataset
	room    []byte
	extents []index.Extent // to be read
	first   uint64         // the record of the first of them
	last    uint64         // and of the last
	filled  int            // how much of room they take
	hash    *xxhash.Digest
	report  Reporter
	total   int64
	read    control.Verification
}

// add reads an extent, or a part of it and later the rest: a record may be longer than
// the room.
func (v *verifier) add(ctx context.Context, e index.Extent) error {
	v.last = v.read.Records
	for {
		if len(v.extents) == 0 {
			v.first = v.last
		}
		part := e
		part.Len = min(e.Len, int64(len(v.room)-v.filled))
		v.extents, v.filled = append(v.extents, part), v.filled+int(part.Len)
		e.Off, e.Len = e.Off+part.Len, e.Len-part.Len
		if v.filled < len(v.room) && len(v.extents) < verifyExtents {
			return nil
		}
		if err := v.flush(ctx); err != nil || e.Len == 0 {
			return err
		}
	}
}

// flush reads and hashes the extents that were added.
func (v *verifier) flush(ctx context.Context) error {
	if len(v.extents) == 0 {
		return nil
	}
	if err := v.data.Read(ctx, index.Merge(v.extents), v.room[:v.filled]); err != nil {
		return fmt.Errorf("%s: %w", v.which(), err)
	}
	v.hash.Write(v.room[:v.filled])
	v.read.Bytes += int64(v.filled)
	v.extents, v.filled = v.extents[:0], 0
	v.report(control.Progress{Doing: "verifying", Bytes: v.read.Bytes, Total: v.total, Records: v.read.Records})
	return ctx.Err()
}

// which says of which records the extents are.
func (v *verifier) which() string {
	if v.first == v.last {
		return fmt.Sprintf("in record %d", v.first)
	}
	return fmt.Sprintf("in records %d to %d", v.first, v.last)
}
