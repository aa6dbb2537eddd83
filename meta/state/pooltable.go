package state

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"rankfs/meta"
)

const (
	MaxPoolJobs   = 1 << 12
	MaxUserJobs   = 64      // of one user
	MaxStages     = 1 << 14 // of all jobs
	MaxCommits    = 1 << 18 // maps of all stages: 35 MiB
	MaxMapBytes   = 1 << 41 // of one map: so that what copies of all have is a number
	MaxCommitMaps = 1 << 10 // maps that are committed by one command: 30 KB
)

// pool has the jobs of the shuffle pool, their stages, and which attempt of each map
// has won. Stages refer to jobs by number, and maps to stages, so that nothing of a job
// that went is taken for part of one that has its name later.
type pool struct {
	jobs    table[string, PoolJob]
	stages  table[stageKey, PoolStage]
	names   table[uint64, StageName] // of the stages, by number
	commits table[uint64, *commits]  // by stage
	count   int                      // of all commits, and of directories of blobs
	kept    table[uint64, int64]     // bytes of all copies of a job, by its number
	byUser  map[uint32]int           // jobs of each user
}

type stageKey struct {
	Job  uint64
	Name string
}

// commits are the commits of a stage, by map, and the names that its blobs have. Those of an
// earlier era are shared with a snapshot, and are followed by others before they are changed.
type commits struct {
	era    uint64
	of     pages[uint64, Commit]
	blobs  pages[string, Blob]
	listed atomic.Pointer[Maps] // those of by map, if a reader shares them
}

func (s *state) pool() *pool { return sectionOf[*pool](s) }

// named is the job of that name and, if it is not zero, that number.
func (p *pool) named(name string, number uint64) (PoolJob, error) {
	j, ok := p.jobs.get(name)
	if !ok || number != 0 && j.Number != number {
		return PoolJob{}, fmt.Errorf("job %s of the shuffle pool %w", shorten(name), meta.ErrNoJob)
	}
	return j, nil
}

// nameOf is the name of the job of that number.
func (p *pool) nameOf(job uint64) (string, bool) {
	for _, j := range p.jobs.m {
		if j.Number == job {
			return j.Name, true
		}
	}
	return "", false
}

// put enters a job, or what became of it.
func (p *pool) put(j PoolJob) {
	if _, ok := p.jobs.get(j.Name); !ok {
		if p.byUser == nil {
			p.byUser = make(map[uint32]int)
		}
		p.byUser[j.UID]++
	}
	p.jobs.set(j.Name, j)
}

func (p *pool) dropJob(j PoolJob) {
	for k, g := range p.stages.m {
		if k.Job == j.Number {
			p.dropStage(g)
		}
	}
	if p.byUser[j.UID]--; p.byUser[j.UID] == 0 {
		delete(p.byUser, j.UID)
	}
	p.jobs.drop(j.Name)
}

func (p *pool) staged(job, name string, number uint64) (PoolStage, error) {
	j, err := p.named(job, 0)
	if err != nil {
		return PoolStage{}, err
	}
	g, ok := p.stages.get(stageKey{j.Number, name})
	if !ok || number != 0 && g.Number != number {
		return PoolStage{}, fmt.Errorf("stage %s of job %s %w", shorten(name), job, meta.ErrNotExist)
	}
	return g, nil
}

// makeStage enters a stage of a job.
func (p *pool) makeStage(job string, g PoolStage) {
	p.stages.set(stageKey{g.Job, g.Name}, g)
	p.names.set(g.Number, StageName{job, g.Name, g.Number})
}

// dropStage forgets a stage with its maps.
func (p *pool) dropStage(g PoolStage) {
	p.forget(g)
	p.stages.drop(stageKey{g.Job, g.Name})
	p.names.drop(g.Number)
}

// life is the time that a job lives unused: as long as the spec of one of its stages says.
func (p *pool) life(j PoolJob) int64 {
	most := int64(0)
	for k, g := range p.stages.m {
		if k.Job == j.Number && g.Specified() && !g.Blobs() {
			most = max(most, int64(g.Spec.Life))
		}
	}
	return cmp.Or(most, int64(meta.DefaultLife))
}

func (p *pool) commit(stage, number uint64) (Commit, bool) {
	t, ok := p.commits.get(stage)
	if !ok {
		return Commit{}, false
	}
	return t.of.get(number)
}

// maps are the commits of a stage, in the order of the maps. They must not be changed while a
// caller goes through them.
func (p *pool) maps(stage uint64) iter.Seq[Commit] {
	t, ok := p.commits.get(stage)
	if !ok {
		return func(func(Commit) bool) {}
	}
	return t.of.values()
}

func (c *Commit) check(spec meta.Stage) error {
	most := numbers(c.Name != "", spec)
	switch {
	case c.Name != "" && meta.CheckKey(c.Name) != nil:
		return meta.CheckKey(c.Name)
	case c.Map >= most:
		return fmt.Errorf("map %d %w: the stage has maps 0 to %d", c.Map, meta.ErrInvalid, most-1)
	case c.Size < 0 || c.Size > MaxMapBytes || c.Attempt >= 1<<32 || len(c.Nodes) > meta.MaxCopies:
		return fmt.Errorf("commit of map %d %w", c.Map, meta.ErrInvalid)
	}
	for _, id := range append([]string{c.Writer}, c.Nodes...) {
		if err := checkID(id); err != nil {
			return err
		}
	}
	return nil
}

// setCommit enters a commit of a stage, or what became of it.
func (p *pool) setCommit(s *state, g PoolStage, c Commit) {
	was, _ := p.commit(g.Number, c.Map)
	p.keep(g.Job, c.kept()-was.kept())
	t := p.toChange(s, g.Number)
	t.of.set(c)
	if c.Name != "" {
		t.blobs.set(Blob{Name: c.Name, Number: c.Map})
	}
}

// enter counts a map as committed. The last that the spec has seals the stage.
func (p *pool) enter(s *state, g PoolStage, c Commit) PoolStage {
	p.setCommit(s, g, c)
	p.count++
	g.Maps++
	g.Bytes += c.Size
	g.Sealed = g.Sealed || g.Maps == g.Spec.Maps
	p.stages.set(stageKey{g.Job, g.Name}, g)
	return g
}

// keep counts what copies of a job have.
func (p *pool) keep(job uint64, bytes int64) {
	has, _ := p.kept.get(job)
	if has += bytes; has == 0 {
		p.kept.drop(job)
	} else {
		p.kept.set(job, has)
	}
}

// forget forgets the maps of a stage.
func (p *pool) forget(g PoolStage) {
	if t, ok := p.commits.get(g.Number); ok {
		p.count -= t.of.len() + len(p.dirs(g.Number))
		for c := range t.of.values() {
			p.keep(g.Job, -c.kept())
		}
		p.commits.drop(g.Number)
	}
}

// toChange are the commits of a stage, which no reader and no snapshot shares.
func (p *pool) toChange(s *state, stage uint64) *commits {
	t, ok := p.commits.get(stage)
	switch {
	case !ok:
		t = &commits{era: s.era}
		p.commits.set(stage, t)
	case t.era != s.era:
		t = &commits{era: s.era, of: t.of.next(), blobs: t.blobs.next()}
		p.commits.set(stage, t)
	case t.listed.Load() != nil:
		t.of = t.of.next()
		t.listed.Store(nil)
	}
	return t
}

// nodeGone: nothing is open any more on a node that was removed, nor reserved, and its
// copies are lost.
func (p *pool) nodeGone(s *state, node string) {
	for _, j := range sorted(&p.jobs) {
		if _, ok := j.Users[node]; ok {
			j = j.without(node, s.Now)
		}
		if _, ok := j.Reserved[node]; ok {
			j.Reserved = maps.Clone(j.Reserved)
			delete(j.Reserved, node)
		}
		p.put(j)
	}
	for _, g := range p.stages.m {
		for _, c := range slices.Collect(p.maps(g.Number)) {
			if slices.Contains(c.Nodes, node) {
				p.setCommit(s, g, c.withoutCopy(node))
			}
		}
	}
}

// blob looks up a name of a stage.
func (p *pool) blob(stage uint64, name string) (Blob, bool) {
	t, ok := p.commits.get(stage)
	if !ok {
		return Blob{}, false
	}
	return t.blobs.get(name)
}

// below are the blobs and directories in a directory, by name; in none, those at the top.
func (p *pool) below(stage uint64, dir string) (all []Blob) {
	t, ok := p.commits.get(stage)
	if !ok {
		return nil
	}
	in := inDir(dir)
	for b, ok := t.blobs.first(in); ok && strings.HasPrefix(b.Name, in); {
		next := b.Name + "\x00"
		if deeper, _, below := strings.Cut(b.Name[len(in):], "/"); below {
			next = in + deeper + afterSlash // what else is in that directory is none of this one
		} else {
			all = append(all, b)
		}
		b, ok = t.blobs.first(next)
	}
	return all
}

// hasBelow reports whether there is something in a directory.
func (p *pool) hasBelow(stage uint64, dir string) bool {
	t, ok := p.commits.get(stage)
	if !ok {
		return false
	}
	b, ok := t.blobs.first(inDir(dir))
	return ok && strings.HasPrefix(b.Name, inDir(dir))
}

func (p *pool) isDir(stage uint64, dir string, made map[string]bool) error {
	if has, ok := p.blob(stage, dir); dir == "" || made[dir] || ok && has.Dir {
		return nil
	}
	return fmt.Errorf("directory %s of blobs %w", dir, meta.ErrNotExist)
}

// dirs are the directories of a stage's blobs, by name, so that each comes after the one
// that it is in.
func (p *pool) dirs(stage uint64) (all []Blob) {
	t, ok := p.commits.get(stage)
	if !ok {
		return nil
	}
	for b := range t.blobs.values() {
		if b.Dir {
			all = append(all, b)
		}
	}
	return all
}

// inDir is the prefix of the names in a directory.
func inDir(dir string) string {
	if dir == "" {
		return ""
	}
	return dir + "/"
}

// afterSlash follows all names that go on with a slash.
const afterSlash = "0"
