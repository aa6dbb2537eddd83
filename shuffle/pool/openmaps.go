package pool

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
	mostOpened = 4096
	openedTime = time.Second
)

// openMaps are the files of maps that are open to be read. A part has a little of each map,
// and the next part what comes after that: a map and its table are opened once for all
// parts that are read at about the same time.
//
// A file that is open takes memory though its name is gone. So it is closed as soon as its
// map is given up, or it was not read for a while. The lock guards the table, and
// readers, read and kept of each map; files are opened and closed without it.
type openMaps struct {
	mu struct {
		sync.Mutex
		of    map[string]*openedMap
		tidy  bool // is called soon
		ended bool
	}
}

// An openedMap is a map that is open, and its table.
type openedMap struct {
	mapped
	table  mapped
	onDisk bool
	rest   int64  // bytes of it that come after its file, and stand behind the table
	ahead  ahead  // what its disk was asked for
	window window // of a table on a disk

	readers int       // now
	read    time.Time // last
	kept    bool      // for the next reader
}

// get is a map of that size that is open, or is opened, for one reader more, which gives it
// back. open opens its file and that of its table, and says whether they are on a disk.
func (o *openMaps) get(name string, size int64, open func(name string) (file, table *os.File, onDisk bool, err error)) (m *openedMap, err error) {
	if m := o.known(name, nil); m != nil {
		return m, nil
	}
	file, table, onDisk, err := open(name)
	if err != nil {
		return nil, err
	}
	m = &openedMap{mapped: mapped{File: file}, table: mapped{File: table}, onDisk: onDisk}
	if !onDisk {
		m.mapped, m.table = newMapped(file), newMapped(table)
		m.rest = max(0, size-m.mapped.size)
	}
	is := o.known(name, m)
	if is != m {
		m.close()
	}
	return is, nil
}

// known is the map of that name that is open, else the one that was opened, which is kept
// from then on if there is room for it.
func (o *openMaps) known(name string, fresh *openedMap) *openedMap {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.mu.of[name]
	if m == nil {
		m = fresh
		if m == nil {
			return nil
		}
		if !o.mu.ended && len(o.mu.of) < mostOpened && m.leavesDescriptors() {
			if o.mu.of == nil {
				o.mu.of = make(map[string]*openedMap)
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
func (m *openedMap) leavesDescriptors() bool {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		panic(err) // there is no kernel without it
	}
	return uint64(m.table.Fd()) < limit.Cur/2
}

// keeps reports whether a map stays open between its readers, as so many do.
func (o *openMaps) keeps(m *openedMap) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return m.kept
}

// give says that a reader has read.
func (o *openMaps) give(m *openedMap) {
	o.mu.Lock()
	m.readers--
	m.read = time.Now()
	last := m.readers == 0 && !m.kept
	o.mu.Unlock()
	if last {
		m.close()
	}
}

// fits checks all of a map by its table, and that nothing comes after.
func (m *openedMap) fits(t pieces.Table) error {
	if m.bytes == nil || m.rest > 0 && m.table.bytes == nil {
		return pieces.Drain(t.Check(io.NewSectionReader(m, 0, t.Size()+1), 0))
	}
	p := t.Check(nil, 0)
	return m.guard(func() error {
		err := p.Add(m.bytes)
		if err == nil && m.rest > 0 {
			err = p.Add(m.table.bytes[m.tableBytes():])
		}
		return errors.Join(err, p.Ended())
	})
}

// tableBytes is at most how many bytes the table has: what comes after them is of the map.
func (m *openedMap) tableBytes() int64 {
	if m.rest == 0 {
		return math.MaxInt64
	}
	return max(0, m.table.size-m.rest)
}

// ReadAt implements io.ReaderAt.
func (m *openedMap) ReadAt(b []byte, off int64) (n int, err error) {
	if m.rest == 0 {
		return m.mapped.ReadAt(b, off)
	}
	return pieces.Joined{First: &m.mapped, N: m.mapped.size, Rest: io.NewSectionReader(&m.table, m.tableBytes(), m.rest)}.ReadAt(b, off)
}

// A window has the bytes of a table that were read last, and those after them: a reader of part
// after part has the next rows without a system call for each. The lock guards all of it.
type window struct {
	mu    sync.Mutex
	at    int64
	bytes []byte
	room  [64 * pieces.RowBytes]byte
}

// readTable is ReadAt of the table.
func (m *openedMap) readTable(b []byte, off int64) (n int, err error) {
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

// piece is where some bytes of the map are mapped, if they are.
func (m *openedMap) piece(begin, end int64) []byte {
	in := m.bytes
	if m.rest > 0 && begin >= m.mapped.size {
		in, begin, end = m.table.bytes, begin-m.mapped.size+m.tableBytes(), end-m.mapped.size+m.tableBytes()
	}
	if end > int64(len(in)) {
		return nil
	}
	return in[begin:end:end]
}

// tidy closes maps that were not read for a while, and does it again as long as there is
// something open.
func (o *openMaps) tidy() {
	o.forget(func(_ string, m *openedMap) bool { return m.readers == 0 && time.Since(m.read) > openedTime })
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.tidy = len(o.mu.of) > 0; o.mu.tidy {
		time.AfterFunc(openedTime, o.tidy)
	}
}

// forget keeps some maps no longer.
func (o *openMaps) forget(is func(name string, m *openedMap) bool) {
	var idle []*openedMap
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

// one forgets the map of a name.
func (o *openMaps) one(name string) {
	o.forget(func(is string, _ *openedMap) bool { return is == name })
}

// below forgets the maps in a directory.
func (o *openMaps) below(dir string) {
	o.forget(func(is string, _ *openedMap) bool { return strings.HasPrefix(is, dir+"/") })
}

// end forgets all, and keeps none from then on.
func (o *openMaps) end() {
	o.mu.Lock()
	o.mu.ended = true
	o.mu.Unlock()
	o.forget(func(string, *openedMap) bool { return true })
}

func (m *openedMap) close() { _ = errors.Join(m.mapped.Close(), m.table.Close()) } // they were read
