package disks

import "time"

// Stats is a snapshot of one directory: gauges, then totals.
type Stats struct {
	Path   string
	Budget int64
	Used   int64 // bytes on disk
	Dying  int64 // part of Used: given up, but still mapped by a rank
	Others int64 // part of Used: claimed for files that are not slabs
	Slabs  int
	Fault  error // why nothing is written to it now, or less than the budget

	Damaged     uint64 // slabs found to differ from their checksum, and not served
	Lost        uint64 // slabs whose file was gone
	Failed      uint64 // slabs that the disk could not read
	Hashed      uint64 // slabs read to compare them with their checksum
	HashedBytes uint64
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
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.mu.count
	s := Stats{
		Path: d.path, Budget: d.budget, Used: d.mu.used, Others: d.mu.others, Slabs: d.mu.slabs.Len(), Fault: d.suspended(),
		Damaged: n.damaged, Lost: n.lost, Failed: n.failed, Hashed: n.hashed, HashedBytes: n.hashedBytes,
	}
	if s.Fault == nil && time.Now().Before(d.mu.full) {
		s.Fault = errFull
	}
	s.Dying = d.mu.looking
	for _, y := range d.mu.dying {
		s.Dying += y.real
	}
	return s
}

// A Holding is how many slabs of one plan there are, and their bytes on disk.
type Holding struct {
	Slabs int
	Bytes int64
}

// Holdings is what there is of each plan.
func (t *Tier) Holdings() map[[16]byte]Holding {
	all := make(map[[16]byte]Holding)
	for _, d := range t.dirs {
		d.tell(all)
	}
	return all
}

// tell adds what the directory has.
func (d *directory) tell(all map[[16]byte]Holding) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.mu.slabs.listed() {
		k := d.mu.slabs.key(id)
		h := all[k.Plan]
		all[k.Plan] = Holding{h.Slabs + 1, h.Bytes + d.mu.slabs.real(id)}
	}
}

// Keys are those of a plan's slabs.
func (t *Tier) Keys(plan [16]byte) (keys []Key) {
	for _, d := range t.dirs {
		keys = append(keys, d.keys(plan)...)
	}
	return keys
}

func (d *directory) keys(plan [16]byte) (keys []Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.mu.slabs.listed() {
		if k := d.mu.slabs.key(id); k.Plan == plan {
			keys = append(keys, k)
		}
	}
	return keys
}
