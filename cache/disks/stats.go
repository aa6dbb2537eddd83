package disks

// Stats is a snapshot of one directory: gauges, then totals.
type Stats struct {
	Path   string
	Budget int64
	Used   int64 // bytes on disk
	Dying  int64 // part of Used: given up, but still mapped by a rank
	Others int64 // part of Used: reserved for files that are not slabs
	Slabs  int
	Fault  error // why nothing is written to it now, or less than the budget

	Damaged uint64 // slabs found to differ from their checksum, and not served
	Lost    uint64 // slabs whose file was gone
	Failed  uint64 // slabs that the disk could not read
	Hashed  uint64 // slabs read to compare them with their checksum
}

// Stats returns what each directory holds and did.
func (t *Tier) Stats() []Stats {
	all := make([]Stats, len(t.dirs))
	for i, d := range t.dirs {
		all[i] = d.stats()
	}
	return all
}

func (d *directory) stats() Stats {
	s := d.slabs.stats()
	s.Path, s.Budget, s.Fault, s.Dying = d.path, d.budget.Max, d.health.fault(), d.unlinked.bytes()
	s.Used, s.Others = d.budget.Use()
	return s
}

func (s *slabs) stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.mu.count
	return Stats{Slabs: s.mu.Len(), Damaged: n.damaged, Lost: n.lost, Failed: n.failed, Hashed: n.hashed}
}

// Holdings are the slabs and bytes of each series.
func (t *Tier) Holdings() map[[16]byte]Holding {
	all := make(map[[16]byte]Holding)
	for _, d := range t.dirs {
		d.slabs.holdings(all)
	}
	return all
}

// Keys are the keys of the slabs of a series.
func (t *Tier) Keys(series [16]byte) (keys []Key) {
	for _, d := range t.dirs {
		keys = append(keys, d.slabs.keys(series)...)
	}
	return keys
}
