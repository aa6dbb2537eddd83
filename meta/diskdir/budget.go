package diskdir

import "sync"

// A Budget counts the room that a directory may take of its disk, and that it takes, in bytes of
// blocks:
//
//   - used is at least what the directory's files take. A file is counted before it is made, and
//     until its blocks are free.
//   - Staying files make way for none, and all others for them. What these take and what is
//     reserved for such never exceed Max together.
//
// Its lock is held within its methods only, and no other is taken meanwhile.
type Budget struct {
	Max int64

	mu struct {
		sync.Mutex
		used     int64
		staying  int64 // of used: by Charge
		reserved int64 // for staying files, and not charged yet: no other may take them
	}
}

// Count counts bytes as used if the budget allows.
func (b *Budget) Count(bytes int64) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok = bytes <= b.Max-b.mu.used-b.mu.reserved; ok {
		b.mu.used += bytes
	}
	return ok
}

// Add counts bytes that files take already, or that they take no more if it is less
// than nothing.
func (b *Budget) Add(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.used += bytes
}

// Left is the room that is not used; less than nothing if more is than may be.
func (b *Budget) Left() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Max - b.mu.used - b.mu.reserved
}

// Use is the room of all files, and of those among them which stay.
func (b *Budget) Use() (used, staying int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.used, b.mu.staying
}

// Beside is the room beside files that stay, as others make way for them.
func (b *Budget) Beside() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Max - b.mu.staying - b.mu.reserved
}

// Reserve keeps bytes for files that stay, unless they are more than there is room for beside these.
func (b *Budget) Reserve(bytes int64) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok = bytes <= b.Max-b.mu.staying-b.mu.reserved; ok {
		b.mu.reserved += bytes
	}
	return ok
}

// Charge counts reserved bytes as used if the budget allows.
func (b *Budget) Charge(bytes int64) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok = bytes <= b.Max-b.mu.used; ok {
		b.mu.reserved -= bytes
		b.mu.staying += bytes
		b.mu.used += bytes
	}
	return ok
}

// Release gives back what was reserved, and perhaps charged.
func (b *Budget) Release(bytes int64, charged bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !charged {
		b.mu.reserved -= bytes
		return
	}
	b.mu.staying -= bytes
	b.mu.used -= bytes
}
