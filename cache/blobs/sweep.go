package blobs

import "time"

// end lets the next use begin, after removing a blob that was opened and that no
// owner wants.
func (s *Store) end(b *Blob, opened bool) {
	s.mu.Lock()
	needless := opened && s.mu.wanted != nil && !s.mu.wanted[b.key]
	s.mu.Unlock()
	if needless {
		b.remove()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.reserved == nil { // there are no files
		delete(s.mu.blobs, b.key)
	}
	u := b.use
	u.users, b.use = 0, nil
	close(u.ended)
}

// sweep removes blobs that no owner wants and that have no use; interrupted ones only if
// they were not touched for as long as patience.
func (s *Store) sweep(patience time.Duration) {
	s.mu.Lock()
	var gone []*Blob
	for key, b := range s.mu.blobs {
		if b.use == nil && s.mu.wanted != nil && !s.mu.wanted[key] && (b.whole || time.Since(b.touched) >= patience) {
			b.use = &use{ended: make(chan struct{})} // so that no other begins meanwhile
			gone = append(gone, b)
		}
	}
	s.mu.Unlock()
	for _, b := range gone {
		s.log.Info("blob removed", "blob", b.path())
		b.remove()
		s.end(b, false)
	}
}
