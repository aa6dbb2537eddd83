package mapfiles

import (
	"context"
	"fmt"
	"io"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/openmaps"
	"rankfs/shuffle/pieces"
)

// Measure says what a map has of some parts, from that one on, into one of a length for each.
func (f *Reader) Measure(of Part, c state.Commit, parts []pieces.Piece) error {
	one, err := f.findSome(of, c, len(parts))
	if err != nil {
		return err
	}
	defer f.open.Give(one.Map)
	begin := one.Begin
	for k := range parts {
		end := one.Rows.End(uint64(k))
		parts[k] = pieces.Piece{Size: end - begin, Sum: one.Rows.SumOf(uint64(k)), Begin: begin}
		begin = end
	}
	return nil
}

// ReadAhead is how many pieces a disk is asked for at a time.
const ReadAhead = 16

// Read reads the pieces of some maps, which were measured, one after the other into dst: ReadAhead
// of them at most. The disk is asked for all before the first is read, so that it brings several at
// a time. If it fails, it says at which of the maps.
func (f *Reader) Read(ctx context.Context, of Part, maps []state.Commit, is []pieces.Piece, dst []byte) (failed int, err error) {
	var room [ReadAhead]openmaps.Piece
	all := room[:0]
	defer func() {
		for _, one := range all {
			f.open.Give(one.Map)
		}
	}()
	for i, c := range maps {
		one, err := f.findAgain(of, c, is[i])
		if err != nil {
			return i, err
		}
		all = append(all, one)
		one.Expect(c.Size)
	}
	for i, one := range all {
		n := is[i].Size
		if err := one.Read(dst[:n]); err != nil {
			return i, fmt.Errorf("part %d of map %d: %w", of.Number, maps[i].Map, err)
		}
		if err := ctx.Err(); err != nil {
			return i, err
		}
		dst = dst[n:]
	}
	return 0, nil
}

// ReadSome reads some bytes of a piece that was measured into dst. They are not checked.
func (f *Reader) ReadSome(of Part, c state.Commit, is pieces.Piece, off int64, dst []byte) error {
	one, err := f.findAgain(of, c, is)
	if err != nil {
		return err
	}
	defer f.open.Give(one.Map)
	return one.ReadSome(off, dst)
}

// Look says what is wrong with a piece, or the whole map, if anything is.
func (f *Reader) Look(of Part, c state.Commit) error {
	one, err := f.find(of, c)
	if err != nil {
		return err
	}
	defer f.open.Give(one.Map)
	return pieces.Drain(one.Checked())
}

// Send calls send with a piece to be read, which fails at its end if it is not right; or with the
// whole map, and its table.
func (f *Reader) Send(of Part, c state.Commit, send func(t pieces.Table, r io.Reader) error) error {
	one, err := f.find(of, c)
	if err != nil {
		return err
	}
	defer f.open.Give(one.Map)
	if of.Whole {
		return send(one.Rows, one.Checked())
	}
	one.Expect(c.Size)
	return send(nil, one.Checked())
}

// SendSome calls send with n bytes of a piece as they are.
func (f *Reader) SendSome(of Part, c state.Commit, off, n int64, send func(io.Reader) error) error {
	one, err := f.find(of, c)
	if err != nil {
		return err
	}
	defer f.open.Give(one.Map)
	if off < 0 || n > one.Length()-off {
		return fmt.Errorf("request for %d bytes of a piece of map %d, from byte %d on, %w: it has %d", n, c.Map, off, meta.ErrInvalid, one.Length())
	}
	r := &counted{from: *io.NewSectionReader(one, one.Begin+off, n)}
	err = send(r)
	if err == nil && r.n < n {
		err = fmt.Errorf("file of map %d %w: it has become shorter", c.Map, meta.ErrCorrupt)
	}
	return err
}

// A counted reader counts what is read.
type counted struct {
	from io.SectionReader
	n    int64
}

// Read implements io.Reader.
func (r *counted) Read(b []byte) (n int, err error) {
	n, err = r.from.Read(b)
	r.n += int64(n)
	return n, err
}
