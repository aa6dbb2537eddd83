package state

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"rankfs/meta"
)

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
		{kind: 39, blank: blank[ReserveQuota], by: owns, since: Signed},
	}
}

func (p *pool) share() sharer {
	return &pool{jobs: p.jobs.share(), stages: p.stages.share(), names: p.names.share(), commits: p.commits.share(), count: p.count, kept: p.kept.share()}
}

func (p *pool) over() bool {
	return p.jobs.len() > MaxPoolJobs || p.stages.len() > MaxStages || p.count > MaxCommits
}

func (p *pool) write(f *frameWriter) {
	for _, j := range sorted(&p.jobs) {
		f.json('J', j)
	}
	for _, k := range slices.SortedFunc(maps.Keys(p.stages.m), compareStages) {
		g := p.stages.m[k]
		f.json('G', g)
		for some := range slices.Chunk(p.dirs(g.Number), MaxCommitMaps) {
			f.json('D', dirFrame{g.Number, some})
		}
		for some := range chunks(p.maps(g.Number), MaxCommitMaps) {
			f.json('M', commitFrame{g.Number, some})
		}
	}
}

// A commitFrame has some of the maps of a stage.
type commitFrame struct {
	Stage uint64
	Maps  Commits
}

func compareStages(a, b stageKey) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Name, b.Name))
}

// A poolRestorer restores jobs, and their stages, each with what it has after it.
type poolRestorer struct {
	*restorer
	stage PoolStage // whose maps come next
}

func (*pool) restore(in *restorer) frames {
	r := &poolRestorer{restorer: in}
	return frames{'J': each(r.job), 'G': each(r.readStage), 'D': each(r.directories), 'M': each(r.commits)}
}

func (in *poolRestorer) job(j PoolJob) error {
	p := in.s.pool()
	_, twice := p.jobs.get(j.Name)
	if err := first(meta.CheckName(j.Name), must(!twice, errTwice), in.sequence(j.Number),
		must(j.Life >= int64(time.Second) && j.Quota >= 0 && j.Used >= 0 && j.Made >= 0, errWrong)); err != nil { // clocks may go back
		return err
	}
	for id := range j.Users {
		if _, err := in.s.nodes().member(id); err != nil {
			return errWrong
		}
	}
	for id, r := range j.Reserved {
		if _, err := in.s.nodes().member(id); err != nil || r.Asked < 0 || r.Freed < 0 || r.Bytes < 0 || r.Bytes > r.Asked {
			return errWrong
		}
	}
	p.put(j)
	return nil
}

func (in *poolRestorer) readStage(g PoolStage) error {
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
func (in *poolRestorer) commits(f commitFrame) error {
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

// dirFrame has some of the directories of the blobs of a stage.
type dirFrame struct {
	Stage uint64
	Dirs  []Blob
}

// directories reads those of blobs, which come after their stage and before its maps.
func (in *poolRestorer) directories(f dirFrame) error {
	p := in.s.pool()
	if g := in.stage; g.Number != f.Stage || !g.Blobs() || g.Maps > 0 || len(f.Dirs) == 0 {
		return errWrong
	}
	for _, d := range f.Dirs {
		_, twice := p.blob(f.Stage, d.Name)
		err := first(meta.CheckKey(d.Name), must(!twice, errTwice), must(d.Dir && d.Number < maxBlob, errWrong),
			p.isDir(f.Stage, meta.KeyDir(d.Name), nil))
		if err != nil {
			return err
		}
		p.makeDir(in.s, in.stage, d)
	}
	return nil
}
