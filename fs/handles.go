package fs

import "sync"

// A handle is one open file or directory: exactly one of its fields is set,
// besides dir.
type handle struct {
	dir     *viewDir // the view of the batch
	slab    Slab
	size    int64
	text    []byte
	table   *Table
	offsets Offsets
	listing *listing
	queue   *reading
}

// Handles are the open files, by the kernel's numbers for them. The lock guards the table,
// not what is open.
type handles struct {
	mu struct {
		sync.Mutex
		byFh map[uint64]handle
		last uint64
	}
}

func (h *handles) init() { h.mu.byFh = make(map[uint64]handle) }

func (h *handles) add(one handle) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.last++
	h.mu.byFh[h.mu.last] = one
	return h.mu.last
}

func (h *handles) get(fh uint64) (handle, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one, ok := h.mu.byFh[fh]
	return one, ok
}

func (h *handles) remove(fh uint64) (handle, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one, ok := h.mu.byFh[fh]
	delete(h.mu.byFh, fh)
	return one, ok
}
