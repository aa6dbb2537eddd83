package fs

func (t Table) size() int64 { return int64(t.Lines) * int64(t.Width) }

// read appends up to n bytes of the table from the given offset.
func (t *Table) read(dst []byte, offset uint64, n int) []byte {
	width := uint64(t.Width)
	skip := int(offset % width)
	for line := offset / width; line < t.Lines && len(dst) < n+skip; line++ {
		dst = t.Append(dst, line)
	}
	if len(dst) <= skip {
		return nil
	}
	return dst[skip:min(len(dst), n+skip)]
}
