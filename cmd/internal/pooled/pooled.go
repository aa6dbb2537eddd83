package pooled

import (
	"context"
	"strconv"

	"rankfs/fs"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/pool"
)

// A Tree is a pool as package fs asks for it.
type Tree struct{ *pool.Pool }

// Job implements fs.Pool.
func (t Tree) Job(ctx context.Context, name string) (fs.PoolJob, error) {
	return asJob(t.Pool.Job(ctx, name))
}

// MakeJob implements fs.Pool.
func (t Tree) MakeJob(ctx context.Context, name string, uid, gid uint32) (fs.PoolJob, error) {
	return asJob(t.Pool.MakeJob(ctx, name, uid, gid, 0))
}

func asJob(j *pool.Job, err error) (fs.PoolJob, error) {
	if err != nil {
		return fs.PoolJob{}, err
	}
	uid, gid := j.Owner()
	return fs.PoolJob{PoolNamed: j, UID: uid, GID: gid, Files: j.Files, PoolUses: j, PoolStages: stages{j}, Blobs: blobs{j.Blobs()}}, nil
}

type stages struct{ *pool.Job }

// Stage implements fs.PoolStages.
func (j stages) Stage(ctx context.Context, name string) (fs.PoolStage, error) {
	return asStage(j.Job.Stage(ctx, name))
}

// MakeStage implements fs.PoolStages.
func (j stages) MakeStage(ctx context.Context, name string) (fs.PoolStage, error) {
	return asStage(j.Job.MakeStage(ctx, name))
}

type blobs struct{ *pool.Blobs }

// Find implements fs.PoolBlobs.
func (b blobs) Find(ctx context.Context, name string) (fs.PoolBlob, error) {
	is, c, err := b.Blobs.Find(ctx, name)
	return fs.PoolBlob{Name: is.Name, Number: is.Number, Dir: is.Dir, PoolMap: describe(c)}, err
}

// List implements fs.PoolBlobs.
func (b blobs) List(ctx context.Context, dir string) (all []fs.PoolBlob, err error) {
	list, err := b.Blobs.List(ctx, dir)
	for _, is := range list {
		all = append(all, fs.PoolBlob{Name: is.Name, Number: is.Number, Dir: is.Dir})
	}
	return all, err
}

// MakeDir implements fs.PoolBlobs.
func (b blobs) MakeDir(ctx context.Context, name string) (fs.PoolBlob, error) {
	is, err := b.Blobs.MakeDir(ctx, name)
	return fs.PoolBlob{Name: is.Name, Number: is.Number, Dir: is.Dir}, err
}

// Remove implements fs.PoolBlobs.
func (b blobs) Remove(ctx context.Context, is fs.PoolBlob) error {
	return b.Blobs.Remove(ctx, state.Blob{Name: is.Name, Number: is.Number, Dir: is.Dir})
}

// Open implements fs.PoolBlobs.
func (b blobs) Open(ctx context.Context, number uint64) (fs.PoolFile, error) {
	f, err := b.Blobs.Open(ctx, number)
	return f, err
}

// Puts implements fs.PoolBlobs.
func (b blobs) Puts() fs.PoolPuts { return b.Blobs }

func asStage(g *pool.Stage, err error) (fs.PoolStage, error) {
	if err != nil {
		return fs.PoolStage{}, err
	}
	return fs.PoolStage{
		PoolNamed: g, Generation: g.Generation, Refused: g.Refused,
		Texts: g, Attempts: g.Attempts(), Maps: maps{g.Maps()}, Parts: parts{g.Parts()},
	}, nil
}

type maps struct{ pool.Maps }

// Find implements fs.PoolMaps.
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

// Open implements fs.PoolMaps.
func (m maps) Open(ctx context.Context, number uint64) (fs.PoolFile, error) {
	f, err := m.Maps.Open(ctx, number)
	return f, err
}

type parts struct{ pool.Parts }

// Open implements fs.PoolParts.
func (p parts) Open(ctx context.Context, name meta.Part, wait bool) (fs.PoolFile, error) {
	f, err := p.Parts.Open(pool.By(ctx, fs.Thread(ctx)), name, wait)
	return f, err
}
