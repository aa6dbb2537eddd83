package mapfiles

import (
	"fmt"
	"io"
	"os"

	"rankfs/meta/state"
	"rankfs/shuffle/openmaps"
	"rankfs/shuffle/pieces"
)

// Table is the table of a map that is here, once that is right.
func (f *Reader) Table(stage uint64, c state.Commit) (t pieces.Table, err error) {
	err = f.Use(stage, c, func(is pieces.Table, _ io.ReaderAt) error {
		t = is
		return nil
	})
	return t, err
}

// Use calls then with the table of a map that is here, once that is right, and the map, which is
// not checked.
func (f *Reader) Use(stage uint64, c state.Commit, then func(t pieces.Table, m io.ReaderAt) error) error {
	return f.checked(stage, c, func(m *openmaps.Map, t pieces.Table) error { return then(t, m) })
}

// Whole opens a map that is here, once all of it is right. There is no file if one has not
// all of it.
func (f *Reader) Whole(stage uint64, c state.Commit) (file *os.File, err error) {
	err = f.verified(stage, c, func(m *openmaps.Map) (err error) {
		file, err = m.Whole()
		return err
	})
	return file, err
}

// Verify says what is wrong with a map that is here, if anything is.
func (f *Reader) Verify(stage uint64, c state.Commit) error {
	return f.verified(stage, c, func(*openmaps.Map) error { return nil })
}

// verified calls then with a map that is here, once all of it is right.
func (f *Reader) verified(stage uint64, c state.Commit, then func(*openmaps.Map) error) error {
	return f.checked(stage, c, func(m *openmaps.Map, t pieces.Table) error {
		if err := m.Fits(t); err != nil {
			return fmt.Errorf("map %d: %w", c.Map, err)
		}
		return then(m)
	})
}

// checked calls then with a map that is here, and its table, once that is right.
func (f *Reader) checked(stage uint64, c state.Commit, then func(*openmaps.Map, pieces.Table) error) error {
	name := Path(stage, c)
	m, err := f.open.Get(name, c.Size, f.openMap)
	if err != nil {
		return err
	}
	defer f.open.Give(m)
	t, err := f.check(m, name, c)
	if err != nil {
		return err
	}
	return then(m, t)
}
