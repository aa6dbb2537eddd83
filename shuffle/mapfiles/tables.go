package mapfiles

import (
	"fmt"
	"io"
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/openmaps"
	"rankfs/shuffle/pieces"
)

// A Reader reads the maps that are here. None is used unchecked: a table against what was
// agreed on, bytes against the table. The lock guards what is known of tables; they are read
// without it.
type Reader struct {
	places

	mu struct {
		sync.Mutex
		tables map[string]bool // those that are known to be what was agreed on
	}
}

// A Part is what is wanted of a map of a stage: its piece of that part, or if Whole all of it.
type Part struct {
	Stage, Number uint64
	Whole         bool
}

// check reads the table of a map.
func (f *Reader) check(m *openmaps.Map, name string, c state.Commit) (pieces.Table, error) {
	b, err := m.Table()
	if err != nil {
		return nil, err
	}
	t := pieces.Table(b)
	if !t.Is(c.Sum, c.Size) {
		return nil, fmt.Errorf("table of map %d %w", c.Map, meta.ErrCorrupt)
	}
	f.mu.Lock()
	f.mu.tables[name] = true
	f.mu.Unlock()
	return t, nil
}

// forget says that what is known of a map was of files that are gone.
func (f *Reader) forget(name string) {
	f.mu.Lock()
	delete(f.mu.tables, name)
	f.mu.Unlock()
	f.open.Forget(name)
}

// rows are the rows of the table for some parts of a map, from that one on, or if whole
// for all, and where the first piece begins. Of a table that is known these are read alone: one
// that has changed since does not fit the bytes.
func (f *Reader) rows(m *openmaps.Map, name string, of Part, c state.Commit, parts int) (rows pieces.Table, begin int64, err error) {
	f.mu.Lock()
	known := f.mu.tables[name]
	f.mu.Unlock()
	if of.Whole || !known {
		all, err := f.check(m, name, c)
		if err != nil || of.Whole {
			return all, 0, err
		}
	}
	all := make(pieces.Table, pieces.RowBytes*(1+parts)) // that of the part before says where the first one begins
	if of.Number == 0 {
		_, err = m.ReadTable(all[pieces.RowBytes:], 0)
	} else {
		_, err = m.ReadTable(all, pieces.RowBytes*int64(of.Number-1))
	}
	if err != nil && err != io.EOF {
		return nil, 0, err
	}
	for i := range uint64(parts) {
		if begin, end := all.End(i), all.End(i+1); err != nil || begin < 0 || end < begin || end > c.Size {
			return nil, 0, fmt.Errorf("table of map %d %w: part %d is from byte %d to %d of %d", c.Map, meta.ErrCorrupt, of.Number+i, begin, end, c.Size)
		}
	}
	return all[pieces.RowBytes:], all.End(0), nil
}

// find opens a map of a part. The caller gives the map back when it has read that.
func (f *Reader) find(of Part, c state.Commit) (openmaps.Piece, error) {
	return f.findSome(of, c, 1)
}

// findSome is find for so many parts, from that one on.
func (f *Reader) findSome(of Part, c state.Commit, parts int) (openmaps.Piece, error) {
	name := Path(of.Stage, c)
	m, err := f.open.Get(name, c.Size, f.openMap)
	if err != nil {
		return openmaps.Piece{}, err
	}
	rows, begin, err := f.rows(m, name, of, c, parts)
	if err != nil {
		f.open.Give(m)
		return openmaps.Piece{}, err
	}
	return openmaps.Piece{Map: m, Rows: rows, Begin: begin}, nil
}

// findAgain is find of a piece that was measured: the table is not read once more.
func (f *Reader) findAgain(of Part, c state.Commit, is pieces.Piece) (openmaps.Piece, error) {
	if is.Begin < 0 {
		return f.find(of, c)
	}
	m, err := f.open.Get(Path(of.Stage, c), c.Size, f.openMap)
	if err != nil {
		return openmaps.Piece{}, err
	}
	return openmaps.Piece{Map: m, Rows: pieces.AppendRow(nil, is.Begin+is.Size, is.Sum), Begin: is.Begin}, nil
}
