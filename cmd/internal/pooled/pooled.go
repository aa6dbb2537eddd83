package pooled

import (
	"context"
	"strconv"

	"rankfs/fs"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/pool"
)

// Of is a pool as package fs asks for it.
func Of(p *pool.Pool) fs.Pool { return fs.Pool{PoolJobs: jobs{p}, PoolJobMaker: jobs{p}} }

type jobs struct{ *pool.Pool }

// Job implements fs.PoolJobs.
func (p jobs) Job(ctx context.Context, name string) (fs.PoolJob, error) {
	return asJob(p.Pool.Job(ctx, name))
}

// MakeJob implements fs.PoolJobMaker.
func (p jobs) MakeJob(ctx context.Context, name string, uid, gid uint32) (fs.PoolJob, error) {
	return asJob(p.Pool.MakeJob(ctx, name, uid, gid, 0))
}

func asJob(j *pool.Job, err error) (fs.PoolJob, error) {
	if err != nil {
		return fs.PoolJob{}, err
	}
	uid, gid := j.Owner()
	b := blobs{j.Blobs()}
	return fs.PoolJob{
		PoolNamed: j, UID: uid, GID: gid, Files: j.Files, PoolUses: j, PoolStages: stages{j}, PoolStageMaker: stages{j},
		Blobs: fs.PoolBlobs{PoolBlobNames: b, PoolBlobDirs: b, PoolBlobFiles: b, PoolPuts: b, MayGrow: b.MayGrow},
	}, nil
}

type stages struct{ *pool.Job }

// Stage implements fs.PoolStages.
func (j stages) Stage(ctx context.Context, name string) (fs.PoolStage, error) {
	return asStage(j.Job.Stage(ctx, name))
}

// MakeStage implements fs.PoolStageMaker.
func (j stages) MakeStage(ctx context.Context, name string) (fs.PoolStage, error) {
	return asStage(j.Job.MakeStage(ctx, name))
}

type blobs struct{ *pool.Blobs }

// Find implements fs.PoolBlobNames.
func (b blobs) Find(ctx context.Context, name string) (fs.PoolBlob, error) {
	is, c, err := b.Blobs.Find(ctx, name)
	return fs.PoolBlob{Name: is.Name, Number: is.Number, Dir: is.Dir, PoolMap: describe(c)}, err
}

// List implements fs.PoolBlobNames.
func (b blobs) List(ctx context.Context, dir string) (all []fs.PoolBlob, err error) {
	list, err := b.Blobs.List(ctx, dir)
	for _, is := range list {
		all = append(all, fs.PoolBlob{Name: is.Name, Number: is.Number, Dir: is.Dir})
	}
	return all, err
}

// MakeDir implements fs.PoolBlobDirs.
func (b blobs) MakeDir(ctx context.Context, name string) (fs.PoolBlob, error) {
	is, err := b.Blobs.MakeDir(ctx, name)
	return fs.PoolBlob{Name: is.Name, Number: is.Number, Dir: is.Dir}, err
}

// Remove implements fs.PoolBlobDirs.
func (b blobs) Remove(ctx context.Context, is fs.PoolBlob) error {
	return b.Blobs.Remove(ctx, state.Blob{Name: is.Name, Number: is.Number, Dir: is.Dir})
}

// Open implements fs.PoolBlobFiles.
func (b blobs) Open(ctx context.Context, number uint64) (fs.PoolFile, error) {
	f, err := b.Blobs.Open(ctx, number)
	return f, err
}

func asStage(g *pool.Stage, err error) (fs.PoolStage, error) {
	if err != nil {
		return fs.PoolStage{}, err
	}
	a, m := g.Attempts(), maps{g.Maps()}
	return fs.PoolStage{
		PoolNamed: g, Generation: g.Generation, Refused: g.Refused, State: g.State, PoolSpec: g,
		Attempts: fs.PoolAttempts{Dir: a.Dir, PoolAttemptWrites: a, PoolAttemptGrowth: a, PoolAttemptEnds: a},
		Maps:     fs.PoolMaps{PoolMapNumbers: m, PoolMapFiles: m},
		Parts:    parts{g.Parts()},
	}, nil
}

type maps struct{ pool.Maps }

// Find implements fs.PoolMapNumbers.
func (m maps) Find(ctx context.Context, number uint64) (fs.PoolMap, error) {
	c, err := m.Maps.Find(ctx, number)
	return describe(c), err
}

func describe(c state.Commit) fs.PoolMap {
	return fs.PoolMap{Size: c.Size, Attributes: []fs.Attribute{
		{Name: "attempt", Value: strconv.FormatUint(c.Attempt, 10)},
		{Name: "copies", Value: strconv.Itoa(len(c.Nodes))},
		{Name: "node", Value: c.Writer},
		{Name: "checksum", Value: "xxh64:" + strconv.FormatUint(c.Sum, 16)},
	}}
}

// Open implements fs.PoolMapFiles.
func (m maps) Open(ctx context.Context, number uint64) (fs.PoolFile, error) {
	f, err := m.Maps.Open(ctx, number)
	return f, err
}

type parts struct{ pool.Parts }

// Open implements fs.PoolParts.
func (p parts) Open(ctx context.Context, thread int32, name meta.Part, wait bool) (fs.PoolFile, error) {
	f, err := p.Parts.Open(ctx, thread, name, wait)
	return f, err
}
