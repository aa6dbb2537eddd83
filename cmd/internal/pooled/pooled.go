package pooled

import (
	"context"
	"strconv"

	"rankfs/fs/pooltree"
	"rankfs/fs/xattr"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/pool"
)

// Of is a pool as package pooltree asks for it.
func Of(p *pool.Pool) pooltree.Pool { return pooltree.Pool{JobNames: jobs{p}, JobMaker: jobs{p}} }

type jobs struct{ *pool.Pool }

// Job implements pooltree.JobNames.
func (p jobs) Job(ctx context.Context, name string) (pooltree.Job, error) {
	return asJob(p.Pool.Job(ctx, name))
}

// MakeJob implements pooltree.JobMaker.
func (p jobs) MakeJob(ctx context.Context, name string, uid, gid uint32) (pooltree.Job, error) {
	return asJob(p.Pool.MakeJob(ctx, name, uid, gid, 0))
}

func asJob(j *pool.Job, err error) (pooltree.Job, error) {
	if err != nil {
		return pooltree.Job{}, err
	}
	uid, gid := j.Owner()
	b := blobs{j.Blobs()}
	return pooltree.Job{
		Named: j, UID: uid, GID: gid, Files: j.Files, Uses: j, StageNames: stages{j}, StageMaker: stages{j},
		Blobs: pooltree.Blobs{BlobNames: b, BlobDirs: b, BlobFiles: b, Puts: b, MayGrow: b.MayGrow},
	}, nil
}

type stages struct{ *pool.Job }

// Stage implements pooltree.StageNames.
func (j stages) Stage(ctx context.Context, name string) (pooltree.Stage, error) {
	return asStage(j.Job.Stage(ctx, name))
}

// MakeStage implements pooltree.StageMaker.
func (j stages) MakeStage(ctx context.Context, name string) (pooltree.Stage, error) {
	return asStage(j.Job.MakeStage(ctx, name))
}

type blobs struct{ *pool.Blobs }

// Find implements pooltree.BlobNames.
func (b blobs) Find(ctx context.Context, name string) (pooltree.Blob, error) {
	is, c, err := b.Blobs.Find(ctx, name)
	return pooltree.Blob{Name: is.Name, Number: is.Number, Dir: is.Dir, Map: describe(c)}, err
}

// List implements pooltree.BlobNames.
func (b blobs) List(ctx context.Context, dir string) (all []pooltree.Blob, err error) {
	list, err := b.Blobs.List(ctx, dir)
	for _, is := range list {
		all = append(all, pooltree.Blob{Name: is.Name, Number: is.Number, Dir: is.Dir})
	}
	return all, err
}

// MakeDir implements pooltree.BlobDirs.
func (b blobs) MakeDir(ctx context.Context, name string) (pooltree.Blob, error) {
	is, err := b.Blobs.MakeDir(ctx, name)
	return pooltree.Blob{Name: is.Name, Number: is.Number, Dir: is.Dir}, err
}

// Remove implements pooltree.BlobDirs.
func (b blobs) Remove(ctx context.Context, is pooltree.Blob) error {
	return b.Blobs.Remove(ctx, state.Blob{Name: is.Name, Number: is.Number, Dir: is.Dir})
}

// Open implements pooltree.BlobFiles.
func (b blobs) Open(ctx context.Context, number uint64) (pooltree.File, error) {
	f, err := b.Blobs.Open(ctx, number)
	return f, err
}

func asStage(g *pool.Stage, err error) (pooltree.Stage, error) {
	if err != nil {
		return pooltree.Stage{}, err
	}
	a, m := g.Attempts(), maps{g.Maps()}
	return pooltree.Stage{
		Named: g, Generation: g.Generation, Refused: g.Refused, State: g.State, SpecText: g,
		Attempts: pooltree.Attempts{Dir: a.Dir, AttemptWrites: a, AttemptGrowth: a, AttemptEnds: a},
		Maps:     pooltree.Maps{MapNumbers: m, MapFiles: m},
		Parts:    parts{g.Parts()},
	}, nil
}

type maps struct{ pool.Maps }

// Find implements pooltree.MapNumbers.
func (m maps) Find(ctx context.Context, number uint64) (pooltree.Map, error) {
	c, err := m.Maps.Find(ctx, number)
	return describe(c), err
}

func describe(c state.Commit) pooltree.Map {
	return pooltree.Map{Size: c.Size, Attributes: xattr.List{
		{Name: "attempt", Value: strconv.FormatUint(c.Attempt, 10)},
		{Name: "copies", Value: strconv.Itoa(len(c.Nodes))},
		{Name: "node", Value: c.Writer},
		{Name: "checksum", Value: "xxh64:" + strconv.FormatUint(c.Sum, 16)},
	}}
}

// Open implements pooltree.MapFiles.
func (m maps) Open(ctx context.Context, number uint64) (pooltree.File, error) {
	f, err := m.Maps.Open(ctx, number)
	return f, err
}

type parts struct{ pool.Parts }

// Open implements pooltree.Parts.
func (p parts) Open(ctx context.Context, thread int32, name meta.Part, wait bool) (pooltree.File, error) {
	f, err := p.Parts.Open(ctx, thread, name, wait)
	return f, err
}
