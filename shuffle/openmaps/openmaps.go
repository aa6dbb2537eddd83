package openmaps

import (
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/shuffle/pieces"
)

// What is open of maps to be read, of one job: so many at most, and each for so long after it
// was read last.
const (
	MaxOpened  = 4096 // maps
	openedTime = time.Second
)

// Maps are the files of maps that are open to be read. A part has a little of each map,
// and the next part what comes after that: a map and its table are opened once for all
// parts that are read at about the same time.
//
// A file that is open takes memory though its name is gone. So it is closed as soon as its
// map is given up, or it was not read for a while. The lock guards the table, and
// readers, read and kept of each map; files are opened and closed without it.
type Maps struct {
	mu struct {
		sync.Mutex
		of    map[string]*Map
		tidy  bool // is called soon
		ended bool
	}
}

// A Map is a map that is open, and its table.
type Map struct {
	file   mapped
	table  mapped
	onDisk bool
	rest   int64  // bytes of it that come after its file, and stand behind the table
	ahead  ahead  // what its disk was asked for
	window window // of a table on a disk

	readers int       // now
	read    time.Time // last
	kept    bool      // for the next reader
}

// Get is a map of that size that is open, or is opened, for one reader more, which gives it
// back. open opens its file and that of its table, and says whether they are on a disk.
func (o *Maps) Get(name string, size int64, open func(name string) (file, table *os.File, onDisk bool, err error)) (m *Map, err error) {
	if m := o.known(name, nil); m != nil {
		return m, nil
	}
	file, table, onDisk, err := open(name)
	if err != nil {
		return nil, err
	}
	m = &Map{file: mapped{File: file}, table: mapped{File: table}, onDisk: onDisk}
	if !onDisk {
		m.file, m.table = newMapped(file), newMapped(table)
		m.rest = max(0, size-m.file.size)
	}
	is := o.known(name, m)
	if is != m {
		m.close()
	}
	return is, nil
}

// known is the map of that name that is open, else the one that was opened, which is kept
// from then on if there is room for it.
func (o *Maps) known(name string, fresh *Map) *Map {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.mu.of[name]
	if m == nil {
		m = fresh
		if m == nil {
			return nil
		}
		if !o.mu.ended && len(o.mu.of) < MaxOpened && m.leavesDescriptors() {
			if o.mu.of == nil {
				o.mu.of = make(map[string]*Map)
			}
			if !o.mu.tidy {
				o.mu.tidy = true
				time.AfterFunc(openedTime, o.tidy)
			}
			o.mu.of[name], m.kept = m, true
		}
	}
	m.readers++
	return m
}

// leavesDescriptors reports whether half of what the daemon may have open is left to other
// things. The kernel gives the lowest free number, so the number tells how many are taken.
func (m *Map) leavesDescriptors() bool {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		panic(err) // there is no kernel without it
	}
	return uint64(m.table.Fd()) < limit.Cur/2
}

// Keeps reports whether a map stays open between its readers, as so many do.
func (o *Maps) Keeps(m *Map) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return m.kept
}

// Give says that a reader has read.
func (o *Maps) Give(m *Map) {
	o.mu.Lock()
	m.readers--
	m.read = time.Now()
	last := m.readers == 0 && !m.kept
	o.mu.Unlock()
	if last {
		m.close()
	}
}

// Fits checks all of a map by its table, and that nothing comes after.
func (m *Map) Fits(t pieces.Table) error {
	if m.file.bytes == nil || m.rest > 0 && m.table.bytes == nil {
		return pieces.Drain(t.Check(io.NewSectionReader(m, 0, t.Size()+1), 0))
	}
	p := t.Check(nil, 0)
	return m.file.guard(func() error {
		err := p.Add(m.file.bytes)
		if err == nil && m.rest > 0 {
			err = p.Add(m.table.bytes[m.tableBytes():])
		}
		return errors.Join(err, p.Ended())
	})
}

// tableBytes is at most how many bytes the table has: what comes after them is of the map.
func (m *Map) tableBytes() int64 {
	if m.rest == 0 {
		return math.MaxInt64
	}
	return max(0, m.table.size-m.rest)
}

// ReadAt implements io.ReaderAt.
func (m *Map) ReadAt(b []byte, off int64) (n int, err error) {
	if m.rest == 0 {
		return m.file.ReadAt(b, off)
	}
	return pieces.Joined{First: &m.file, N: m.file.size, Rest: io.NewSectionReader(&m.table, m.tableBytes(), m.rest)}.ReadAt(b, off)
}

// A window has the bytes of a table that were read last, and those after them: a reader of part
// after part has the next rows without a system call for each. The lock guards all of it.
type window struct {
	mu    sync.Mutex
	at    int64
	bytes []byte
	room  [64 * pieces.RowBytes]byte
}

// Table reads all of the table.
func (m *Map) Table() ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(&m.table, 0, m.tableBytes()))
}

// ReadTable is ReadAt of the table.
func (m *Map) ReadTable(b []byte, off int64) (n int, err error) {
	if m.table.bytes != nil {
		return m.table.ReadAt(b, off)
	}
	is := &m.window
	is.mu.Lock()
	defer is.mu.Unlock()
	if off < is.at || off+int64(len(b)) > is.at+int64(len(is.bytes)) {
		n, err := m.table.ReadAt(is.room[:], off)
		if is.at, is.bytes = off, is.room[:n]; err != nil && err != io.EOF {
			return 0, err
		}
	}
	if n = copy(b, is.bytes[off-is.at:]); n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// bytes are some of the map where they are mapped, if they are.
func (m *Map) bytes(begin, end int64) []byte {
	in := m.file.bytes
	if m.rest > 0 && begin >= m.file.size {
		in, begin, end = m.table.bytes, begin-m.file.size+m.tableBytes(), end-m.file.size+m.tableBytes()
	}
	if end > int64(len(in)) {
		return nil
	}
	return in[begin:end:end]
}

// Whole is the file of the map opened once more, or nil if that has not all of it.
func (m *Map) Whole() (*os.File, error) {
	if m.rest > 0 {
		return nil, nil
	}
	fd, err := unix.FcntlInt(m.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), m.file.Name()), nil
}

// tidy closes maps that were not read for a while, and does it again as long as there is
// something open.
func (o *Maps) tidy() {
	o.forgetIf(func(_ string, m *Map) bool { return m.readers == 0 && time.Since(m.read) > openedTime })
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.tidy = len(o.mu.of) > 0; o.mu.tidy {
		time.AfterFunc(openedTime, o.tidy)
	}
}

// forgetIf keeps some maps no longer.
func (o *Maps) forgetIf(is func(name string, m *Map) bool) {
	var idle []*Map
	o.mu.Lock()
	for name, m := range o.mu.of {
		if !is(name, m) {
			continue
		}
		delete(o.mu.of, name)
		m.kept = false
		if m.readers == 0 {
			idle = append(idle, m)
		}
	}
	o.mu.Unlock()
	for _, m := range idle {
		m.close()
	}
}

// Forget forgets the map of a name.
func (o *Maps) Forget(name string) {
	o.forgetIf(func(is string, _ *Map) bool { return is == name })
}

// ForgetBelow forgets the maps in a directory.
func (o *Maps) ForgetBelow(dir string) {
	o.forgetIf(func(is string, _ *Map) bool { return strings.HasPrefix(is, dir+"/") })
}

// End forgets all, and keeps none from then on.
func (o *Maps) End() {
	o.mu.Lock()
	o.mu.ended = true
	o.mu.Unlock()
	o.forgetIf(func(string, *Map) bool { return true })
}

func (m *Map) close() { _ = errors.Join(m.file.Close(), m.table.Close()) } // they were read
