package pool

import "rankfs/meta"

// Count has the counts of all jobs, by number: their stages and maps as they are now, the copies
// as they were when the pool last looked at itself, seconds ago at most.
func (p *Pool) Count() map[uint64]Count {
	p.tallies.mu.Lock()
	looked := p.tallies.mu.counts
	p.tallies.mu.Unlock()
	counts := make(map[uint64]Count)
	for job, t := range p.config.State.PoolTotals() {
		c := looked[job]
		c.Stages, c.Maps, c.Bytes = t.Stages, t.Maps, t.Bytes
		counts[job] = c
	}
	return counts
}

// Stats has the room that is used now, and its bounds; stages, maps and copies are as Count has them.
func (p *Pool) Stats() meta.PoolStats {
	s := meta.PoolStats{Used: p.budget.Used(), Budget: p.config.RAM, Waiting: p.waits.Count(), Damaged: p.copies.damaged.Load()}
	if d := p.local.disk; d != nil {
		s.Disk, s.DiskMax = d.Room()
	}
	for _, c := range p.Count() {
		s.Jobs++
		s.Stages += c.Stages
		s.Maps += c.Maps
		s.Bytes += c.Bytes
		s.Missing += c.Missing
		s.Away += c.Away
		s.Lost += c.Lost
	}
	return s
}

// Used is the memory that jobs have on this node, by number.
func (p *Pool) Used() map[uint64]int64 {
	used := make(map[uint64]int64)
	for number, f := range p.local.all() {
		used[number], _ = f.Memory()
	}
	return used
}
