package state

import (
	"cmp"
	"slices"
)

// PoolJobs are the jobs of the shuffle pool, by name.
func (m *Machine) PoolJobs() []PoolJob {
	s, done := m.read()
	defer done()
	all, made := values(&s.pool().jobs), s.madeOfJobs()
	for i := range all {
		all[i].Datasets = made[all[i].Name]
	}
	return all
}

// PoolJob is the job of that name.
func (m *Machine) PoolJob(name string) (PoolJob, bool) {
	s, done := m.read()
	defer done()
	j, ok := s.pool().jobs.get(name)
	if ok {
		j.Datasets = s.madeOfJob(name)
	}
	return j, ok
}

// PoolBytes is the number of bytes of all copies of the maps of a job.
func (m *Machine) PoolBytes(job uint64) int64 {
	s, done := m.read()
	defer done()
	bytes, _ := s.pool().kept.get(job)
	return bytes
}

// PoolLeft is the part of a job's quota that is neither used nor reserved.
func (m *Machine) PoolLeft(name string) int64 {
	s, done := m.read()
	defer done()
	p := s.pool()
	j, _ := p.jobs.get(name)
	return p.left(j)
}

// A PoolTotal is what the stages of a job have come to.
type PoolTotal struct {
	Stages int
	Maps   uint64
	Bytes  int64 // of one copy of each map
}

// PoolTotals are the totals of each job, by its number.
func (m *Machine) PoolTotals() map[uint64]PoolTotal {
	s, done := m.read()
	defer done()
	p := s.pool()
	totals := make(map[uint64]PoolTotal, len(p.jobs.m))
	for _, j := range p.jobs.m {
		totals[j.Number] = PoolTotal{}
	}
	for k, g := range p.stages.m {
		t := totals[k.Job]
		totals[k.Job] = PoolTotal{t.Stages + 1, t.Maps + g.Maps, t.Bytes + g.Bytes}
	}
	return totals
}

// Stages are the stages of a job, by name.
func (m *Machine) Stages(job uint64) (all []PoolStage) {
	s, done := m.read()
	defer done()
	for k, g := range s.pool().stages.m {
		if k.Job == job {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b PoolStage) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Stage is the stage of a job of that name.
func (m *Machine) Stage(job uint64, name string) (PoolStage, bool) {
	s, done := m.read()
	defer done()
	return s.pool().stages.get(stageKey{job, name})
}

// Commit is the attempt of a map that has won.
func (m *Machine) Commit(stage, number uint64) (Commit, bool) {
	s, done := m.read()
	defer done()
	return s.pool().commit(stage, number)
}

// Commits are the commits of a stage, as they are now.
func (m *Machine) Commits(stage uint64) Maps {
	s, done := m.read()
	defer done()
	t, ok := s.pool().commits.get(stage)
	if !ok {
		return Maps{}
	}
	all := t.listed.Load()
	if all == nil {
		all = listed(&t.of)
		t.listed.Store(all)
	}
	return *all
}

// Blob looks up a name of the blobs of a stage, and its commit, if it is no
// directory.
func (m *Machine) Blob(stage uint64, name string) (Blob, Commit, bool) {
	s, done := m.read()
	defer done()
	b, ok := s.pool().blob(stage, name)
	c, _ := s.pool().commit(stage, b.Number)
	return b, c, ok
}

// Blobs are the entries of a directory of the blobs of a stage, by name; in none, those at
// the top.
func (m *Machine) Blobs(stage uint64, dir string) []Blob {
	s, done := m.read()
	defer done()
	return s.pool().below(stage, dir)
}

// Fleeting reports whether a power failure may undo a command that was answered, if all that
// came after it is undone, too.
//
// It may where the command says of nothing but files that are lost when their hosts lose
// power: those of maps, unless their stages want them on disks. A blob's name would stand for
// what it stood for before, which a disk may have. And where it only removes: what was removed
// is there once more then, as after an unlink(2) whose directory was not synced. Its files
// are, too, if they were on a disk: none is given up before it is on the disk that it may be.
// What was made in place of it was either answered later than the removal came to the disk, as
// all commands that are not fleeting, or is undone with it.
func (m *Machine) Fleeting(c Command) bool {
	switch c := c.(type) {
	case *DropMap, *DropBlob, *DropStage, *DropJob:
		return true
	case *CommitMaps:
		return m.inMemory(c)
	}
	return false
}

// inMemory reports whether a command commits nothing but maps that are in memory.
func (m *Machine) inMemory(k *CommitMaps) bool {
	s, done := m.read()
	defer done()
	for _, maps := range k.Maps {
		name, ok := s.pool().names.get(maps.Stage)
		if g, err := name.of(s); !ok || err != nil || g.Blobs() || g.Spec.Durable {
			return false
		}
	}
	return true
}
