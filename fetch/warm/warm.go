// Package warm maps files whose bytes are in the page cache already.
//
// Copying records from a mapping is two to four times faster than reading them
// one by one, but only if no page has to be fetched: a page fault that waits
// for a disk holds up a processor of the Go scheduler, and with it the opens of all
// readers. So a file is mapped while all of it is cached, and read otherwise. A
// goroutine fills in the mapping's page tables before the first copy from it.
package warm

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lookAgain is how long a look at the page cache is believed.
	lookAgain = time.Second
	// letGo is how long after its last use a mapping goes. Its pages count
	// as resident memory of the daemon, though they are the kernel's cache.
	letGo = 2 * time.Second
)

// A File says for each request whether to copy from a mapping. The zero value
// is not ready; its methods may be called concurrently.
//
// The lock is not held while page tables are filled in, or the page cache is looked at, nor
// while a request copies: a mapping stays as long as it has users.
type File struct {
	fd   int
	size int64

	mu struct {
		sync.Mutex
		data   []byte // the mapping, if there is one
		filled bool   // its page tables are
		users  int    // requests, and the goroutine that fills in the page tables
		used   time.Time
		idle   *time.Timer // lets go of the mapping; nil if there is none
		looked time.Time
		cached bool
		closed bool
	}
	tasks sync.WaitGroup
}

// New is for the first size bytes of an open file, which has to stay open
// until Close.
func New(fd int, size int64) *File { return &File{fd: fd, size: size} }

// A Request is one use of a file.
type Request struct {
	// Data is the file's bytes, to be copied from until Done, or nil if
	// they are to be read. If the file is truncated meanwhile, touching
	// them faults.
	Data []byte
	file *File
}

// Begin starts a request.
func (f *File) Begin() Request {
	r, now := Request{file: f}, time.Now()
	f.look(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.closed || !f.mu.cached {
		return r
	}
	if f.mu.data == nil {
		f.open(now)
	}
	if f.mu.filled {
		f.mu.users++
		r.Data = f.mu.data
	}
	return r
}

// open maps the file and has the page tables filled in. mu is held.
func (f *File) open(now time.Time) {
	data, err := unix.Mmap(f.fd, 0, int(f.size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		f.mu.cached = false // for a while
		return
	}
	f.mu.data, f.mu.used = data, now
	f.mu.users++
	f.mu.idle = time.AfterFunc(letGo, f.expire)
	f.tasks.Go(func() {
		err := f.fill(data)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.mu.users--
		f.mu.used = time.Now()
		f.mu.filled = err == nil
	})
}

// fill has the kernel enter all pages of the mapping, a part at a time: it
// holds a lock that new mappings wait for.
func (f *File) fill(data []byte) error {
	const part = 16 << 20
	for from := 0; from < len(data); from += part {
		f.mu.Lock()
		closed := f.mu.closed
		f.mu.Unlock()
		if closed {
			return nil
		}
		if err := unix.Madvise(data[from:min(from+part, len(data))], unix.MADV_POPULATE_READ); err != nil {
			return err // the file was cut short; or Linux before 5.14
		}
	}
	return nil
}

// Done ends a request.
func (r Request) Done() {
	f := r.file
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.used = time.Now()
	if r.Data != nil {
		f.mu.users--
	}
}

// look finds out now and then whether the whole file is cached.
func (f *File) look(now time.Time) {
	f.mu.Lock()
	known := now.Sub(f.mu.looked) < lookAgain || f.mu.closed
	if !known {
		f.mu.looked = now // others believe the old answer meanwhile
	}
	f.mu.Unlock()
	if known {
		return
	}
	cached := f.size > 0 && allCached(f.fd, f.size)
	f.mu.Lock()
	defer f.mu.Unlock()
	// In a large file of single pages the look itself takes long.
	f.mu.looked = time.Now().Add(20 * time.Since(now))
	f.mu.cached = cached
}

// allCached reports whether all pages of the file are in the page cache. Half a
// per cent may be missing: the kernel's count and ours need not agree to the
// page, and a few slow faults are no harm.
func allCached(fd int, size int64) bool {
	var s unix.Cachestat_t
	if err := unix.Cachestat(uint(fd), &unix.CachestatRange{Off: 0, Len: uint64(size)}, &s, 0); err != nil {
		return false // Linux before 6.5, or a file system that cannot tell
	}
	pages := uint64(size) / uint64(unix.Getpagesize())
	return s.Cache >= pages-pages/200
}

// expire lets go of a mapping that was not used for a while.
func (f *File) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.data == nil {
		return
	}
	if rest := letGo - time.Since(f.mu.used); f.mu.users > 0 || rest > 0 {
		f.mu.idle.Reset(max(rest, letGo/2))
		return
	}
	f.unmap()
}

// unmap is called with mu held and no users.
func (f *File) unmap() {
	if f.mu.data != nil {
		f.mu.idle.Stop()
		unix.Munmap(f.mu.data)
		f.mu.data, f.mu.idle, f.mu.filled = nil, nil, false
	}
}

// Close lets go of the file. No request is under way.
func (f *File) Close() {
	f.mu.Lock()
	f.mu.closed = true
	f.mu.Unlock()
	f.tasks.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unmap()
}
