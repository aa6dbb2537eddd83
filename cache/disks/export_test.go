package disks

// Held are the slabs that are more than a record of a table.
func (t *Tier) Held() (n int) {
	for _, d := range t.dirs {
		d.mu.Lock()
		n += len(d.mu.held)
		d.mu.Unlock()
	}
	return n
}
