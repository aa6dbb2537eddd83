package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"rankfs/meta"
)

// Grace is how long a job lives that was held once and that nobody holds or uses any
// more.
const Grace = 10 * time.Minute

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

// commits are those of a stage, by map, and the names that its blobs have. Those of an
// earlier era are shared with a snapshot, and are copied before they are changed.
type commits struct {
	era    uint64
	of     map[uint64]Commit
	blobs  map[string]Blob
	sorted atomic.Pointer[Commits] // those of by map, if they were listed since they changed
}

func (s *state) pool() *pool { return sectionOf[*pool](s) }

func (*pool) commands() []command {
	return []command{
		{kind: 23, blank: blank[MakeJob], by: owns, since: Signed},
		{kind: 24, blank: blank[DropJob], by: members, since: Signed},
		{kind: 25, blank: blank[UseJob], by: owns, since: Signed},
		{kind: 26, blank: blank[MakeStage], by: members, since: Signed},
		{kind: 27, blank: blank[DropStage], by: members, since: Signed},
		{kind: 28, blank: blank[SpecifyStage], by: members, since: Signed},
		{kind: 29, blank: blank[CommitMaps], by: owns, since: Signed},
		{kind: 30, blank: blank[SealStage], by: members, since: Signed},
		{kind: 31, blank: blank[ResetStage], by: members, since: Signed},
		{kind: 32, blank: blank[KeepCopy], by: owns, since: Signed},
		{kind: 33, blank: blank[DropMap], by: members, since: Signed},
		{kind: 34, blank: blank[PutBlobs], by: owns, since: Signed},
		{kind: 35, blank: blank[DropBlob], by: members, since: Signed},
		{kind: 37, blank: blank[SetQuota], by: members, since: Signed},
		{kind: 38, blank: blank[BeginStage], by: members, since: Signed},
	}
}

func (p *pool) share() section {
	return &pool{jobs: p.jobs.share(), stages: p.stages.share(), names: p.names.share(), commits: p.commits.share(), count: p.count, kept: p.kept.share()}
}

func (p *pool) over() bool {
	return p.jobs.len() > MaxPoolJobs || p.stages.len() > MaxStages || p.count > MaxCommits
}

// A PoolJob is a directory of the pool.
type PoolJob struct {
	Name   string
	Number uint64 // later jobs have larger numbers
	Nonce  uint64 // of the command that made it
	UID    uint32
	GID    uint32
	Made   int64            // time of the cluster
	Used   int64            // when a file of it was open last, if none is now
	Held   bool             `json:",omitempty"` // its file hold was open once
	Life   int64            // nanoseconds that it lives unused
	Quota  int64            `json:",omitempty"` // bytes that all copies of its maps may have; zero: any
	Users  map[string]int64 `json:",omitempty"` // nodes on which something of it is open, since when
}

// Lives is how long the job lives when nobody uses it.
func (j *PoolJob) Lives() time.Duration {
	if j.Held {
		return Grace
	}
	return time.Duration(j.Life)
}

// End is when the job goes, if clocks are right, unless a file of it is open.
func (j *PoolJob) End() (at time.Time, ok bool) {
	return time.Unix(0, j.Used).Add(j.Lives()), len(j.Users) == 0
}

// A PoolStage is a directory of a job.
type PoolStage struct {
	Job        uint64
	Name       string
	Number     uint64     // later stages have larger numbers
	Nonce      uint64     // of the command that made it
	Spec       meta.Stage // zero until it was written
	Begun      bool       `json:",omitempty"` // attempts are written: its spec stays
	Generation uint64     `json:",omitempty"` // how often it was reset, or given another spec
	Resets     uint64     `json:",omitempty"`
	Sealed     bool       `json:",omitempty"`
	Maps       uint64     `json:",omitempty"` // that are committed
	Bytes      int64      `json:",omitempty"` // of these
}

// Numbers is how many numbers there are that its maps can have.
func (g *PoolStage) Numbers() uint64 { return numbers(g.Blobs(), g.Spec) }

func numbers(blobs bool, spec meta.Stage) uint64 {
	switch {
	case blobs:
		return maxBlob
	case spec.Maps > 0:
		return spec.Maps
	}
	return meta.MaxMaps
}

// Specified reports whether the stage has a spec.
func (g *PoolStage) Specified() bool { return g.Spec != (meta.Stage{}) }

// A Commit is the attempt of a map that has won.
type Commit struct {
	Map     uint64
	Attempt uint64
	Writer  string // the node that it was written on
	Size    int64
	Sum     uint64   // of the bytes, and of the offsets of the parts
	Nodes   []string // that have a copy; none if it is lost
	Name    string   `json:",omitempty"` // of a blob: what it is put as
}

func (p *pool) write(f *frameWriter) {
	for _, j := range sorted(&p.jobs) {
		f.json('J', j)
	}
	for _, k := range slices.SortedFunc(maps.Keys(p.stages.m), compareStages) {
		g := p.stages.m[k]
		f.json('G', g)
		for some := range slices.Chunk(p.dirs(g.Number), MaxBatch) {
			f.json('D', dirFrame{g.Number, some})
		}
		for some := range slices.Chunk(p.maps(g), MaxBatch) {
			f.json('M', commitFrame{g.Number, some})
		}
	}
}

// A commitFrame has some of the maps of a stage.
type commitFrame struct {
	Stage uint64
	Maps  Commits
}

// maps are the commits of a stage, in the order of the maps.
func (p *pool) maps(g PoolStage) (all Commits) {
	if t, ok := p.commits.get(g.Number); ok {
		all = slices.Grow(all, len(t.of))
		for _, number := range slices.Sorted(maps.Keys(t.of)) {
			all = append(all, t.of[number])
		}
	}
	return all
}

func compareStages(a, b stageKey) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Name, b.Name))
}

func (*pool) restore(in *restorer) frames {
	return frames{'J': each(in.poolJob), 'G': each(in.poolStage), 'D': each(in.directories), 'M': each(in.commits)}
}

func (in *restorer) poolJob(j PoolJob) error {
	p := in.s.pool()
	_, twice := p.jobs.get(j.Name)
	if err := first(meta.CheckName(j.Name), must(!twice, errTwice), in.sequence(j.Number),
		must(j.Life >= int64(time.Second) && j.Quota >= 0 && j.Used >= 0 && j.Made >= 0, errWrong)); err != nil { // clocks may go back
		return err
	}
	for id := range j.Users {
		if _, err := in.s.member(id); err != nil {
			return errWrong
		}
	}
	p.put(j)
	return nil
}

func (in *restorer) poolStage(g PoolStage) error {
	p := in.s.pool()
	key := stageKey{g.Job, g.Name}
	_, twice := p.stages.get(key)
	job, ok := p.nameOf(g.Job)
	err := first(meta.CheckName(g.Name), must(!twice, errTwice), must(ok, errWrong), in.sequence(g.Number),
		must(g.Maps == 0 && g.Bytes == 0 || g.Specified(), errWrong), must(!g.Blobs() || g.Spec == blobSpec && !g.Sealed, errWrong))
	if err != nil {
		return err
	}
	g.Maps, g.Bytes = 0, 0 // counted by what follows
	p.makeStage(job, g)
	in.stage = g
	return nil
}

// commits reads commits of maps, which come after their stage.
func (in *restorer) commits(f commitFrame) error {
	if in.stage.Number != f.Stage || f.Stage == 0 || len(f.Maps) == 0 {
		return errWrong
	}
	p := in.s.pool()
	for _, one := range f.Maps {
		if _, twice := p.commit(f.Stage, one.Map); twice {
			return errTwice
		}
		_, named := p.blob(f.Stage, one.Name)
		err := first(one.check(in.stage.Spec), must((one.Name != "") == in.stage.Blobs(), errWrong), must(!named, errTwice),
			p.isDir(f.Stage, meta.KeyDir(one.Name), nil))
		if err != nil {
			return err
		}
		in.stage = p.enter(in.s, in.stage, one)
	}
	return nil
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

// nameOf is the name of the job of that number.
func (p *pool) nameOf(job uint64) (string, bool) {
	for _, j := range p.jobs.m {
		if j.Number == job {
			return j.Name, true
		}
	}
	return "", false
}

// makeStage enters a stage of a job.
func (p *pool) makeStage(job string, g PoolStage) {
	p.stages.set(stageKey{g.Job, g.Name}, g)
	p.names.set(g.Number, StageName{job, g.Name, g.Number})
}

func (p *pool) commit(stage, number uint64) (Commit, bool) {
	t, ok := p.commits.get(stage)
	if !ok {
		return Commit{}, false
	}
	c, ok := t.of[number]
	return c, ok
}

// toChange are the commits of a stage, which no reader and no snapshot shares.
func (p *pool) toChange(s *state, stage uint64) *commits {
	t, ok := p.commits.get(stage)
	switch {
	case !ok:
		t = &commits{era: s.era, of: make(map[uint64]Commit), blobs: make(map[string]Blob)}
		p.commits.set(stage, t)
	case t.era != s.era:
		t = &commits{era: s.era, of: maps.Clone(t.of), blobs: maps.Clone(t.blobs)}
		p.commits.set(stage, t)
	}
	t.sorted.Store(nil)
	return t
}

// setCommit enters a commit of a stage, or what became of it.
func (p *pool) setCommit(s *state, g PoolStage, c Commit) {
	was, _ := p.commit(g.Number, c.Map)
	p.keep(g.Job, c.kept()-was.kept())
	t := p.toChange(s, g.Number)
	t.of[c.Map] = c
	if c.Name != "" {
		t.blobs[c.Name] = Blob{Name: c.Name, Number: c.Map}
	}
}

// kept is how many bytes all copies have.
func (c *Commit) kept() int64 { return c.Size * int64(len(c.Nodes)) }

// keep counts what copies of a job have.
func (p *pool) keep(job uint64, bytes int64) {
	has, _ := p.kept.get(job)
	if has += bytes; has == 0 {
		p.kept.drop(job)
	} else {
		p.kept.set(job, has)
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

// dropStage forgets a stage with its maps.
func (p *pool) dropStage(g PoolStage) {
	p.forget(g)
	p.stages.drop(stageKey{g.Job, g.Name})
	p.names.drop(g.Number)
}

// forget forgets the maps of a stage.
func (p *pool) forget(g PoolStage) {
	if t, ok := p.commits.get(g.Number); ok {
		p.count -= len(t.of) + len(p.dirs(g.Number))
		for _, c := range t.of {
			p.keep(g.Job, -c.kept())
		}
		p.commits.drop(g.Number)
	}
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

// leave says that a node was removed: nothing is open there any more, and its copies
// are lost.
func (p *pool) leave(s *state, node string) {
	for _, j := range sorted(&p.jobs) {
		if _, ok := j.Users[node]; ok {
			p.put(j.without(node, s.Now))
		}
	}
	for _, g := range p.stages.m {
		for _, c := range p.maps(g) {
			if slices.Contains(c.Nodes, node) {
				p.setCommit(s, g, c.withoutCopy(node))
			}
		}
	}
}

func (c Commit) withoutCopy(node string) Commit {
	c.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), func(id string) bool { return id == node })
	return c
}

func (j PoolJob) without(node string, now int64) PoolJob {
	j.Users = maps.Clone(j.Users)
	delete(j.Users, node)
	if len(j.Users) == 0 {
		j.Users = nil
	}
	j.Used = now
	return j
}

// named is the job of that name and, if it is not zero, that number.
func (p *pool) named(name string, number uint64) (PoolJob, error) {
	j, ok := p.jobs.get(name)
	if !ok || number != 0 && j.Number != number {
		return PoolJob{}, fmt.Errorf("job %s of the shuffle pool %w", shorten(name), meta.ErrNotExist)
	}
	return j, nil
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
