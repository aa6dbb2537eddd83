package cache

// check makes sure that the slab is still what it was when it was made or
// opened: one on a disk may have left the page cache since, and the disk may
// have failed. One that is not is released, and who opens next gets another.
func (s *Slab) check() error {
	e := s.entry
	if e.file == nil {
		return nil
	}
	err := e.file.Check()
	if err == nil {
		return nil
	}
	c := s.cache
	c.config.Log.Debug("slab on nvme not served", "cause", err)
	c.mu.Lock()
	if !e.stale { // others may hold it, and rest it when they are done
		e.stale = true
		if c.mu.entries[e.key] == e {
			delete(c.mu.entries, e.key)
			c.lost(e.key)
		}
	}
	c.mu.Unlock()
	s.Release()
	return err
}
