package disks

// Held are the slabs that are more than a row of a table.
func (t *Tier) Held() (n int) {
	for _, d := range t.dirs {
		d.slabs.mu.Lock()
		n += len(d.slabs.mu.held)
		d.slabs.mu.Unlock()
	}
	return n
}
