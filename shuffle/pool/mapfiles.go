package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/wire"
	"rankfs/shuffle/access"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/openmaps"
	"rankfs/shuffle/pieces"
)

// mapFiles are the files of the maps that a job has on this node: in memory, or on the disk.
// The lock guards what is known of tables and directories; they are read and made without it.
type mapFiles struct {
	access.Names
	root *os.Root      // in memory, with all other files of the job
	disk *store        // nil if there is none
	open openmaps.Maps // to be read

	ram *memory.Budget // of the memory that all jobs have

	mu struct {
		sync.Mutex
		tables map[string]bool // those that are known to be what was agreed on
		stages map[uint64]bool // those whose directories are known to be there
	}
}

// commitTime is how long after its last copy was sent a commit is agreed on, or never.
const commitTime = 2 * agreeTime

func (f *mapFiles) init(root *os.Root) {
	f.root = root
	f.Names.Init(commitTime)
	f.mu.tables, f.mu.stages = make(map[string]bool), make(map[uint64]bool)
}

func stageDir(stage uint64) string { return strconv.FormatUint(stage, 10) }

// mapPath is where a committed attempt is, on its writer's node and where there are
// copies of it.
func mapPath(stage uint64, c state.Commit) string {
	b := append(strconv.AppendUint(make([]byte, 0, 80), stage, 10), "/"+mapsDir+"/"...)
	b = appendPadded(b, c.Map, 10, 6)
	b = append(strconv.AppendUint(append(b, '.'), c.Attempt, 10), '.')
	b = append(append(b, c.Writer...), '.')
	return string(appendPadded(b, c.Sum, 16, 16))
}

// appendPadded appends a number with zeros before it. A part has a path of each map, which
// package fmt takes longer for than what is read there.
func appendPadded(b []byte, n uint64, base, width int) []byte {
	var digits [64]byte
	d := strconv.AppendUint(digits[:0], n, base)
	for range width - len(d) {
		b = append(b, '0')
	}
	return append(b, d...)
}

func (f *mapFiles) hasStage(number uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.stages[number]
}

func (f *mapFiles) madeStage(number uint64, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.mu.stages, number); is {
		f.mu.stages[number] = true
	}
}

// store is the store in memory.
func (f *mapFiles) store() store { return store{f.root, nil, f.ram, &f.Names, &f.open} }

// storeOn is the store in a directory on a disk.
func (f *mapFiles) storeOn(d *disk.Disk, dir *os.Root) *store {
	return &store{dir, d, nil, &f.Names, &f.open}
}

// stores are the places in which the job has maps: memory first.
func (f *mapFiles) stores() []store {
	all := []store{f.store()}
	if f.disk != nil {
		all = append(all, *f.disk)
	}
	return all
}

// hasMap reports whether a map is here. It is not known while the disk does not answer.
func (f *mapFiles) hasMap(ctx context.Context, stage uint64, c state.Commit) (has bool, err error) {
	name := mapPath(stage, c)
	for _, s := range f.stores() {
		size, err := s.size(ctx, name)
		switch {
		case err == nil:
			return size == c.Size || s.hasTail(name, size, c), nil
		case err == disk.ErrSilent || ctx.Err() != nil:
			return false, err
		}
	}
	return false, nil
}

// lacks reports whether it is known that a map is not here.
func (f *mapFiles) lacks(ctx context.Context, stage uint64, c state.Commit) bool {
	has, err := f.hasMap(ctx, stage, c)
	return !has && err == nil
}

// hasRoom says why so much of a map could not be kept now, if so. It counts nothing: what comes
// does where it is written.
func (f *mapFiles) hasRoom(lasting bool, bytes int64) error {
	switch {
	case lasting && f.disk == nil:
		return errNone
	case f.disk != nil && f.disk.disk.Free() >= disk.Blocks(bytes):
		return nil
	case lasting:
		return disk.ErrFull
	case f.ram.Free() < bytes:
		return memory.ErrNoRoom
	}
	return nil
}

// errNone is for what has to last where nothing does.
var errNone = meta.Worded(meta.ErrNoSpace, "the stage has ack=durable, and this node has no disk for its job: mount with --pool-nvme DIR:SIZE, or, if the log says that the disk had failed when the job was made, make the job anew")

// take keeps a map of which r has the bytes: on the disk if there is one. What has to last
// is nowhere else.
func (f *mapFiles) take(ctx context.Context, lasting bool, name string, t pieces.Table, r io.Reader) error {
	switch {
	case f.disk != nil:
		if err := f.disk.put(ctx, name, t, r, lasting); err != disk.ErrFull || lasting {
			return err
		}
	case lasting:
		return errNone
	}
	return f.store().put(ctx, name, t, r, false)
}

// copyToDisk has a map on the disk, too.
func (f *mapFiles) copyToDisk(ctx context.Context, stage uint64, c state.Commit) error {
	return f.checked(stage, c, func(m *openmaps.Map, t pieces.Table) error {
		return f.disk.put(ctx, mapPath(stage, c), t, io.NewSectionReader(m, 0, c.Size+1), true)
	})
}

// drop removes the files of a map.
func (f *mapFiles) drop(name string) {
	for _, s := range f.stores() {
		s.remove(name)
		s.remove(name + idx)
	}
	f.forget(name)
}

// openMap opens the file of a map and that of its table, wherever they are: both in one place,
// as in memory some of a map may stand behind its table.
func (f *mapFiles) openMap(name string) (file, table *os.File, onDisk bool, err error) {
	for _, s := range f.stores() {
		if file, table, err = s.openMap(name); !errors.Is(err, fs.ErrNotExist) {
			return file, table, s.disk != nil, err
		}
	}
	return nil, nil, false, err
}

// table is the table of a map that is here.
func (f *mapFiles) table(stage uint64, c state.Commit) (t pieces.Table, err error) {
	err = f.checked(stage, c, func(_ *openmaps.Map, is pieces.Table) error {
		t = is
		return nil
	})
	return t, err
}

// check reads the table of a map.
func (f *mapFiles) check(m *openmaps.Map, name string, c state.Commit) (pieces.Table, error) {
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
func (f *mapFiles) forget(name string) {
	f.mu.Lock()
	delete(f.mu.tables, name)
	f.mu.Unlock()
	f.open.Forget(name)
}

// rows are the rows of the table for some parts of a map, from that of the request on, or if whole
// for all, and where the first piece begins. Of a table that is known these are read alone: one
// that has changed since does not fit the bytes.
func (f *mapFiles) rows(m *openmaps.Map, name string, r PieceRequest, c state.Commit, parts int) (rows pieces.Table, begin int64, err error) {
	f.mu.Lock()
	known := f.mu.tables[name]
	f.mu.Unlock()
	if r.Whole || !known {
		all, err := f.check(m, name, c)
		if err != nil || r.Whole {
			return all, 0, err
		}
	}
	all := make(pieces.Table, pieces.RowBytes*(1+parts)) // that of the part before says where the first one begins
	if r.Part == 0 {
		_, err = m.ReadTable(all[pieces.RowBytes:], 0)
	} else {
		_, err = m.ReadTable(all, pieces.RowBytes*int64(r.Part-1))
	}
	if err != nil && err != io.EOF {
		return nil, 0, err
	}
	for i := range uint64(parts) {
		if begin, end := all.End(i), all.End(i+1); err != nil || begin < 0 || end < begin || end > c.Size {
			return nil, 0, fmt.Errorf("table of map %d %w: part %d is from byte %d to %d of %d", c.Map, meta.ErrCorrupt, r.Part+i, begin, end, c.Size)
		}
	}
	return all[pieces.RowBytes:], all.End(0), nil
}

// find opens a map of a part. The caller gives the map back when it has read that.
func (f *mapFiles) find(r PieceRequest, c state.Commit) (openmaps.Piece, error) {
	return f.findSome(r, c, 1)
}

// findSome is find for so many parts, from the one of the request on.
func (f *mapFiles) findSome(r PieceRequest, c state.Commit, parts int) (openmaps.Piece, error) {
	name := mapPath(r.Stage, c)
	m, err := f.open.Get(name, c.Size, f.openMap)
	if err != nil {
		return openmaps.Piece{}, err
	}
	rows, begin, err := f.rows(m, name, r, c, parts)
	if err != nil {
		f.open.Give(m)
		return openmaps.Piece{}, err
	}
	return openmaps.Piece{Map: m, Rows: rows, Begin: begin}, nil
}

// findAgain is find of a piece that was measured: the table is not read once more.
func (f *mapFiles) findAgain(r PieceRequest, c state.Commit, is pieces.Piece) (openmaps.Piece, error) {
	if is.Begin < 0 {
		return f.find(r, c)
	}
	m, err := f.open.Get(mapPath(r.Stage, c), c.Size, f.openMap)
	if err != nil {
		return openmaps.Piece{}, err
	}
	return openmaps.Piece{Map: m, Rows: pieces.AppendRow(nil, is.Begin+is.Size, is.Sum), Begin: is.Begin}, nil
}

// lend is a piece that was measured, where it is in memory. The caller gives the map back;
// there is none if the piece is to be read, which says what is wrong with it.
func (f *mapFiles) lend(r PieceRequest, c state.Commit, is pieces.Piece) ([]byte, *openmaps.Map) {
	one, err := f.findAgain(r, c, is)
	if err != nil {
		return nil, nil
	}
	if b := one.InMemory(); b != nil && f.open.Keeps(one.Map) {
		return b, one.Map
	}
	f.open.Give(one.Map)
	return nil, nil
}

func (f *mapFiles) send(ctx context.Context, r PieceRequest, c state.Commit, emit func([]byte) error) error {
	one, err := f.find(r, c)
	if err != nil {
		return err
	}
	defer f.open.Give(one.Map)
	if r.Whole {
		if err := emit(one.Rows); err != nil {
			return err
		}
	} else {
		one.Expect(c.Size)
	}
	return wire.From(one.Checked())(ctx, emit)
}

// sendSome sends some bytes of a piece as they are.
func (f *mapFiles) sendSome(ctx context.Context, r PieceRequest, c state.Commit, off, n int64, emit func([]byte) error) error {
	one, err := f.find(r, c)
	if err != nil {
		return err
	}
	defer f.open.Give(one.Map)
	if off < 0 || n > one.Length()-off {
		return fmt.Errorf("request for %d bytes of a piece of map %d, from byte %d on, %w: it has %d", n, c.Map, off, meta.ErrInvalid, one.Length())
	}
	sent := int64(0)
	err = wire.From(io.NewSectionReader(one, one.Begin+off, n))(ctx, func(b []byte) error {
		sent += int64(len(b))
		return emit(b)
	})
	if err == nil && sent < n {
		err = fmt.Errorf("file of map %d %w: it has become shorter", c.Map, meta.ErrCorrupt)
	}
	return err
}

// whole opens a map that is here, once all of it is right. There is no file if one has not
// all of it.
func (f *mapFiles) whole(stage uint64, c state.Commit) (file *os.File, err error) {
	return file, f.verified(stage, c, func(m *openmaps.Map) (err error) {
		file, err = m.Whole()
		return err
	})
}

func (f *mapFiles) verify(stage uint64, c state.Commit) error {
	return f.verified(stage, c, func(*openmaps.Map) error { return nil })
}

// verified calls then with a map that is here, once all of it is right.
func (f *mapFiles) verified(stage uint64, c state.Commit, then func(*openmaps.Map) error) error {
	return f.checked(stage, c, func(m *openmaps.Map, t pieces.Table) error {
		if err := m.Fits(t); err != nil {
			return fmt.Errorf("map %d: %w", c.Map, err)
		}
		return then(m)
	})
}

// checked calls then with a map that is here, and its table, once that is right.
func (f *mapFiles) checked(stage uint64, c state.Commit, then func(*openmaps.Map, pieces.Table) error) error {
	name := mapPath(stage, c)
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
