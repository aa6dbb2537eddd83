package fs

import "context"

// A Table is text whose lines are equally long, so that any part of it can be
// made without the rest.
type Table struct {
	Lines  uint64
	Width  int // of a line, with its newline
	Append func(ctx context.Context, dst []byte, line uint64) ([]byte, error)
}

func (t Table) size() int64 { return int64(t.Lines) * int64(t.Width) }

// read appends up to n bytes of the table from the given offset.
func (t *Table) read(ctx context.Context, dst []byte, offset uint64, n int) (_ []byte, err error) {
	width := uint64(t.Width)
	skip := int(offset % width)
	for line := offset / width; line < t.Lines && len(dst) < n+skip; line++ {
		if dst, err = t.Append(ctx, dst, line); err != nil {
			return nil, err
		}
	}
	if len(dst) <= skip {
		return nil, nil
	}
	return dst[skip:min(len(dst), n+skip)], nil
}
