package disks

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"rankfs/meta"
	"rankfs/meta/diskdir"
)

// slabs are the slabs of a directory: where the file of each is, and its users. Whenever mu is
// free:
//
//   - A slab is in the table for as long as its name is on the disk, and listed there
//     for as long as it may be opened; then it is in place. It is in held if it has
//     users, or is not listed: it is on its way in or out.
//   - What slabs take is in the budget while they are in the table.
//   - place is nil, or what the path led to when it was opened. A slab is read and
//     removed in its own place, even if the path means another by then.
//
// While mu is held no lock but the budget's is taken, and no system call goes to the
// disk.
type slabs struct {
	mu struct {
		sync.Mutex
		entries
		last  *place // that was entered; nil if none was
		count counters
	}
}

type counters struct{ damaged, lost, failed, hashed uint64 }

// entries are the fields of slabs under its lock. Its methods need the lock held.
type entries struct {
	*table
	place  *place // nil if it could not be opened
	held   map[uint32]*slab
	change uint64 // counts what makes the index stale
	index  int64  // bytes of the index file, which are in the budget
	budget *diskdir.Budget
}

// A slab is one that is in use, or on its way in or out: there is more to say
// of it than the table has room for.
type slab struct {
	label
	id       uint32 // in the table; 0: no more
	place    *place
	real     int64 // bytes on disk
	users    int   // opens not released
	right    proof
	rejected bool     // counted as wrong
	last     *os.File // when its name is gone: that the last user gives to unlinked
}

func newSlabs(b *diskdir.Budget) *slabs {
	s := new(slabs)
	s.mu.entries = entries{table: newTable(), held: make(map[uint32]*slab), budget: b}
	return s
}

// find is the slab of k, if it may be opened.
func (e *entries) find(k Key) (id uint32) {
	if id = e.Find(k); e.place == nil || !e.is(id, listed) {
		return 0
	}
	return id
}

// there reports whether a slab may be opened.
func (e *entries) there(s *slab) bool { return s != nil && e.is(s.id, listed) }

// hold is the slab of a number that find returned.
func (e *entries) hold(id uint32) *slab {
	s := e.held[id]
	if s == nil && id != 0 {
		s = &slab{label: e.label(id), id: id, place: e.place, real: e.real(id), right: e.proof(id), rejected: e.is(id, rejected)}
		e.held[id] = s
	}
	return s
}

// release leaves a slab to the table, unless there is more to say of it.
func (e *entries) release(s *slab) {
	if s.users > 0 || !e.there(s) {
		return
	}
	e.prove(s.id, s.right)
	if s.rejected {
		e.mark(s.id, rejected)
	}
	delete(e.held, s.id)
	s.id = 0
}

// recall enters a slab of an earlier daemon as the one used last.
func (e *entries) recall(l label, real int64, known bool) {
	id := e.insert(l, real)
	if id == 0 {
		return
	}
	if known {
		e.mark(id, seen)
	}
	e.list(id)
	e.budget.Add(real)
}

// admit lets a slab be opened, unless its place has been given up meanwhile.
func (e *entries) admit(s *slab) {
	if s.place != e.place {
		e.erase(s.id)
		e.budget.Add(-s.real)
		return
	}
	e.list(s.id)
	e.release(s)
}

// drop takes a slab from those that may be opened, to be removed, and reports whether
// it was one.
func (e *entries) drop(s *slab) bool {
	if !e.there(s) {
		return false
	}
	e.unlist(s.id)
	e.change++
	return true
}

// lose forgets a slab that may be opened and is not there.
func (e *entries) lose(id uint32) {
	e.budget.Add(-e.real(id))
	e.change++
	e.erase(id)
}

// erase takes a slab from the table.
func (e *entries) erase(id uint32) {
	if s := e.held[id]; s != nil {
		s.id = 0
		delete(e.held, id)
	}
	e.remove(id)
}

// setIndex says what the index file takes, which is counted: it has replaced the last
// one, or that is gone.
func (e *entries) setIndex(bytes int64) {
	e.budget.Add(-e.index)
	e.index = bytes
}

// indexBytes is what the index file takes.
func (s *slabs) indexBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.index
}

// where is the place, and the last one that there was.
func (s *slabs) where() (p, last *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.place, s.mu.last
}

// place is where slabs are now, or nil.
func (s *slabs) place() *place {
	p, _ := s.where()
	return p
}

// enter makes p the place.
func (s *slabs) enter(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.place, s.mu.last = p, p
}

// leave drops all slabs of a place that is gone, or no longer this daemon's.
func (s *slabs) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.mu.listed() { // the goroutine that removes an unlisted slab finds out by itself
		s.mu.lose(id)
	}
	s.mu.setIndex(0)
	s.mu.place = nil
}

// close is the place, which is no more.
func (s *slabs) close() *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.mu.place
	s.mu.place = nil
	return p
}

func (s *slabs) has(k Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.find(k) != 0
}

// take finds the slab of k for one more user.
func (s *slabs) take(k Key) (one *slab, right proof) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.mu.find(k)
	if id == 0 {
		return nil, right
	}
	one = s.mu.hold(id)
	one.users++
	s.mu.touch(id)
	s.mu.change++
	return one, one.right
}

// unuse ends the use of a slab. The last user of one that has no name buries its file.
func (s *slabs) unuse(one *slab) (last *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.users--; one.users == 0 {
		last = one.last
	}
	s.mu.release(one)
	return last
}

// touch counts the slab of k as used.
func (s *slabs) touch(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := s.mu.find(k); id != 0 {
		s.mu.touch(id)
	}
}

// right is the last proof of a slab; lost if it is of another place.
func (s *slabs) right(one *slab) (right proof, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return one.right, s.mu.place != one.place
}

// proven notes that a slab has been hashed, and was right.
func (s *slabs) proven(one *slab, right proof) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.right = right
	s.mu.count.hashed++
}

// idle are at most so many keys of slabs that no rank has open, the least recently
// used first.
func (s *slabs) idle(most int) []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.place == nil {
		return nil
	}
	var keys []Key
	for id := range s.mu.oldest() {
		if len(keys) == most {
			break
		}
		if s.mu.held[id] == nil {
			keys = append(keys, s.mu.key(id))
		}
	}
	return keys
}

// dropIdle takes the slab of k out of those that may be opened, or returns nil if a
// rank has opened it meanwhile.
func (s *slabs) dropIdle(k Key) *slab {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.mu.find(k)
	if s.mu.held[id] != nil {
		return nil
	}
	one := s.mu.hold(id)
	s.mu.drop(one)
	return one
}

// dropKey takes the slab of k out of those that may be opened, or returns nil.
func (s *slabs) dropKey(k Key) *slab {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.mu.hold(s.mu.find(k)); s.mu.drop(one) {
		return one
	}
	return nil
}

// drop takes a slab out of those that may be opened, and reports whether it was one.
func (s *slabs) drop(one *slab) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.drop(one)
}

// stay undoes drop.
func (s *slabs) stay(one *slab) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.admit(one)
}

// unlink forgets a slab whose name is gone. If it has users, the last of them gives
// its file to unlinked.
func (s *slabs) unlink(one *slab, f *os.File) (held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.erase(one.id)
	if held = one.users > 0; held {
		one.last = f
	}
	return held
}

// expect makes the slab the one of its key, which cannot be opened yet.
func (s *slabs) expect(one *slab) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.Find(one.key) != 0 || s.mu.place != one.place {
		return false
	}
	if one.id = s.mu.insert(one.label, one.real); one.id == 0 {
		return false
	}
	s.mu.mark(one.id, seen)
	s.mu.held[one.id] = one
	return true
}

// miss undoes expect.
func (s *slabs) miss(one *slab) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.erase(one.id)
}

// publish lets a slab that was expected be opened. It has its name.
func (s *slabs) publish(one *slab, right proof) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.right = right
	s.mu.admit(one)
	s.mu.change++
}

// tally counts why a slab is rejected, and reports whether it is to be told. A missing
// slab whose name this daemon never saw, known only from an index written before a
// crash, does not count as lost.
func (s *slabs) tally(one *slab, cause error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.right = proof{} // should it stay
	known := one.rejected
	one.rejected = true
	switch {
	case known: // by another user of the slab
		return false
	case errors.Is(cause, meta.ErrCorrupt):
		s.mu.count.damaged++
	case !errors.Is(cause, fs.ErrNotExist):
		s.mu.count.failed++
	case s.mu.is(one.id, seen):
		s.mu.count.lost++
	default:
		return false
	}
	return true
}

// isThere reports whether a slab may be opened.
func (s *slabs) isThere(one *slab) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.there(one)
}

// A Holding counts the slabs of one series, and their bytes on disk.
type Holding struct {
	Slabs int
	Bytes int64
}

// holdings adds the slabs and bytes of each series.
func (s *slabs) holdings(all map[[16]byte]Holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.mu.listed() {
		k := s.mu.key(id)
		h := all[k.Series]
		all[k.Series] = Holding{h.Slabs + 1, h.Bytes + s.mu.real(id)}
	}
}

// keys are the keys of the slabs of a series.
func (s *slabs) keys(series [16]byte) (keys []Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.mu.listed() {
		if k := s.mu.key(id); k.Series == series {
			keys = append(keys, k)
		}
	}
	return keys
}
