package pack

// Stats is a snapshot of a store. Those up to Damaged are totals; the rest are
// gauges, and but for Limit zero after Close.
type Stats struct {
	Packed, Unpacked uint64 // slabs and reads of them
	Refused          uint64 // slabs that were not worth packing
	Damaged          uint64 // slabs found to differ from what was packed, and not served

	Limit int64 // the budget
	Used  int64 // real bytes, in whole pages, of all slabs there are
	Plain int64 // bytes that slabs unpack to which were not dropped
	Slabs int   // that were not dropped, or are being packed
	Dying int   // that were dropped and are still read
}

// Stats is a snapshot of the store's counters and content.
func (s *Store) Stats() Stats {
	used, limit := s.arena.usage()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.mu.count
	return Stats{
		Packed: n.packed, Refused: n.refused, Unpacked: n.unpacked, Damaged: n.damaged,
		Limit: limit, Used: used, Plain: s.mu.plain, Slabs: s.mu.slabs, Dying: s.mu.dying,
	}
}
