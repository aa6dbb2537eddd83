package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/groupcommit"
	"rankfs/shuffle/mapfiles"
)

// putsAtOnce is how many files of a directory are summed and copied at a time.
const putsAtOnce = 8

// Blobs are the files of a job that have names of their own choice: the last that is put
// as a name is what the name stands for, on all nodes. Their bytes are maps of a stage
// that no program sees, so that they are copied, repaired and sent as those are.
type Blobs struct{ job *Job }

// Blobs are the blobs of the job.
func (j *Job) Blobs() *Blobs { return &Blobs{j} }

// stage is the stage of the blobs. There is none until something is put.
func (b *Blobs) stage(ctx context.Context) (*Stage, error) { return b.job.Stage(ctx, meta.BlobDir) }

// made is the stage of the blobs, which is made if there is none.
func (b *Blobs) made(ctx context.Context) (*Stage, state.PoolStage, error) {
	g, err := b.stage(ctx)
	if errors.Is(err, meta.ErrNotExist) {
		g, err = b.job.MakeStage(ctx, meta.BlobDir)
	}
	if errors.Is(err, meta.ErrExist) {
		g, err = b.stage(ctx)
	}
	if err != nil {
		return nil, state.PoolStage{}, err
	}
	is, err := g.is()
	return g, is, err
}

// Find looks up a name. Names change, on whichever node, so the cluster is asked.
func (b *Blobs) Find(ctx context.Context, name string) (state.Blob, state.Commit, error) {
	pool := b.job.pool
	if err := pool.Know(ctx); err != nil {
		return state.Blob{}, state.Commit{}, err
	}
	if g, ok := pool.config.State.Stage(b.job.is.Number, meta.BlobDir); ok {
		if is, c, ok := pool.config.State.Blob(g.Number, name); ok {
			return is, c, nil
		}
	}
	return state.Blob{}, state.Commit{}, fmt.Errorf("blob %s of job %s %w", name, b.job.is.Name, meta.ErrNotExist)
}

// List has the entries of a directory; an empty name is the top.
func (b *Blobs) List(ctx context.Context, dir string) ([]state.Blob, error) {
	if dir != "" {
		if _, _, err := b.Find(ctx, dir); err != nil {
			return nil, err
		}
	} else if err := b.job.pool.Know(ctx); err != nil {
		return nil, err
	}
	g, ok := b.job.pool.config.State.Stage(b.job.is.Number, meta.BlobDir)
	if !ok {
		return nil, nil
	}
	return b.job.pool.config.State.Blobs(g.Number, dir), nil
}

// MakeDir makes a directory.
func (b *Blobs) MakeDir(ctx context.Context, name string) (state.Blob, error) {
	g, is, err := b.made(ctx)
	if err != nil {
		return state.Blob{}, err
	}
	d := state.Blob{Name: name, Number: rand.Uint64() >> 4, Dir: true}
	_, err = b.job.pool.agree(ctx, &state.PutBlobs{
		StageName: g.named(), Generation: is.Generation, Node: b.job.pool.config.Cluster.Self(), Dirs: []state.Blob{d},
	})
	return d, err
}

// Remove forgets a blob, or a directory in which nothing is.
func (b *Blobs) Remove(ctx context.Context, is state.Blob) error {
	g, err := b.stage(ctx)
	if err == nil {
		_, err = b.job.pool.agree(ctx, &state.DropBlob{StageName: g.named(), Blob: is})
	}
	return err
}

// Open opens a blob. Its bytes stay what they are, whatever is put as its name later.
func (b *Blobs) Open(ctx context.Context, number uint64) (File, error) {
	g, err := b.stage(ctx)
	if err != nil {
		return nil, err
	}
	if c, ok := b.job.pool.config.State.Commit(g.number, number); ok && len(c.Nodes) == 0 {
		return nil, meta.Worded(meta.ErrLost, "blob %s of job %s is lost: it has no copy left; put it again", c.Name, b.job.is.Name)
	}
	f, err := g.Maps().Open(ctx, number)
	if errors.Is(err, meta.ErrNotExist) || errors.Is(err, fs.ErrNotExist) {
		return nil, meta.Worded(meta.ErrStale, "a blob of job %s was removed, or its name is another one's now: open it again", b.job.is.Name)
	}
	return f, err
}

// Write has a file of this node, which may become a blob, written until done is called; it
// is refused for one that is being put, or may have been.
func (b *Blobs) Write(name string) (done func(), err error) {
	f, err := b.job.files()
	if err != nil {
		return nil, err
	}
	return f.write(name)
}

// Opened has such a file open to write until done is called, whatever its name is by then: it
// is not put. It is called within Write of the name that it has.
func (b *Blobs) Opened(file *os.File) (done func(), err error) {
	f, err := b.job.files()
	if err != nil {
		return nil, err
	}
	return f.opened(file)
}

// MayGrow says why such files must not have so many more bytes, if so.
func (b *Blobs) MayGrow(bytes int64) error {
	return b.job.pool.mayGrow(b.job.is, bytes, meta.Stage{Copies: meta.DefaultCopies})
}

// An original is a file or directory of this node that becomes a blob of a name.
type original struct {
	from, name string
	info       os.FileInfo
}

// originals are a file, or a directory with all that is in it, and the names they get.
func (f *files) originals(from, name string) (all []original, err error) {
	info, err := f.root.Lstat(from)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		return []original{{from, name, info}}, nil
	case !info.IsDir():
		return nil, meta.Worded(meta.ErrInvalid, "%s is no file and no directory, so that it cannot be a blob", from)
	}
	err = fs.WalkDir(f.root.FS(), from, func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir() && !e.Type().IsRegular():
			return meta.Worded(meta.ErrInvalid, "%s is no file and no directory, so that it cannot be a blob", at)
		case len(all) == meta.MaxPut:
			return meta.Worded(meta.ErrInvalid, "%s has more than %d files and directories; put them in several", from, meta.MaxPut)
		}
		info, err := e.Info()
		one := original{at, path.Join(name, strings.TrimPrefix(at, from)), info}
		all = append(all, one)
		return cmp.Or(err, meta.CheckKey(one.name))
	})
	return all, err
}

// Put makes a file of this node the blob of a name, in place of one that has the name; or
// a directory one of blobs, all at once. With exclusive a name that is taken is refused.
//
// Nothing has happened when it is interrupted before the cluster is asked. After that the
// file keeps its name until it is known what became of it: to ask again is to learn.
func (b *Blobs) Put(ctx context.Context, from, name string, exclusive bool) error {
	if err := meta.CheckKey(name); err != nil {
		return err
	}
	f, err := b.job.files()
	if err != nil {
		return err
	}
	g, is, err := b.made(ctx)
	if err != nil {
		return err
	}
	if _, err := f.attempts(g.number); err != nil {
		return err
	}
	defer f.Enter()()
	done, err := f.Commit(ctx, from)
	if err != nil {
		return fmt.Errorf("put %s: %w", from, err)
	}
	defer done()
	all, err := f.originals(from, name)
	if err != nil {
		return fmt.Errorf("put %s: %w", from, err)
	}
	p := putting{stage: g, is: is, files: f, command: state.PutBlobs{
		StageName: g.named(), Generation: is.Generation, Node: b.job.pool.config.Cluster.Self(), New: exclusive,
	}}
	defer p.end()
	if err := p.prepare(ctx, all); err != nil {
		return errors.Join(fmt.Errorf("put %s: %w", from, err), p.takeBack())
	}
	err = p.agree(ctx)
	switch {
	case errors.Is(err, groupcommit.ErrUnknown):
		return meta.Worded(context.DeadlineExceeded, "put %s: %w; rename it once more", from, err)
	case err != nil:
		return errors.Join(err, p.takeBack())
	}
	return f.removeOriginals(all, p.done)
}

// removeOriginals removes what has become blobs. One that has taken the name of a file
// meanwhile stays.
func (f *files) removeOriginals(all []original, done []prepared) error {
	if all[0].info.IsDir() {
		return f.root.RemoveAll(all[0].from)
	}
	info, err := f.root.Lstat(all[0].from)
	if err != nil || !os.SameFile(info, done[0].info) {
		return nil
	}
	return f.root.Remove(all[0].from)
}

// A putting is a put under way.
type putting struct {
	stage   *Stage
	is      state.PoolStage
	files   *files
	command state.PutBlobs
	done    []prepared
}

// A prepared file is sealed, has the name of a map, and its copies.
type prepared struct {
	commit  state.Commit
	info    os.FileInfo
	sealing *sealing // closed; it can take the name of the map back
	expect  func()
}

// prepare seals and copies files, some at a time.
func (p *putting) prepare(ctx context.Context, all []original) error {
	var files []original
	for _, one := range all {
		if one.info.IsDir() {
			number := blobNumber(p.command.Node, one.name, one.info, 0)
			p.command.Dirs = append(p.command.Dirs, state.Blob{Name: one.name, Number: number, Dir: true})
			continue
		}
		files = append(files, one)
	}
	var work sync.WaitGroup
	var mu sync.Mutex
	var failed error
	slots := make(chan struct{}, putsAtOnce)
	for _, one := range files {
		slots <- struct{}{}
		mu.Lock()
		stop := failed != nil
		mu.Unlock()
		if stop {
			break
		}
		work.Go(func() {
			defer func() { <-slots }()
			done, err := p.prepareOne(ctx, one)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = cmp.Or(failed, err)
				return
			}
			p.done = append(p.done, done)
		})
	}
	work.Wait()
	return cmp.Or(failed, ctx.Err())
}

// prepareOne seals one file, and makes its copies: then the cluster can agree on it.
func (p *putting) prepareOne(ctx context.Context, one original) (done prepared, err error) {
	closed, err := p.files.Commit(ctx, writtenName(one.info))
	if err != nil {
		return done, err
	}
	defer closed()
	s, err := p.files.seal(ctx, p.is, one.from)
	if err != nil {
		return done, err
	}
	defer s.close()
	info, err := s.file.Stat()
	if err != nil {
		return done, err
	}
	node := p.command.Node
	c := state.Commit{
		Map: blobNumber(node, one.name, info, s.table.Sum()), Writer: node, Size: s.size, Sum: s.table.Sum(), Name: one.name,
	}
	expect := p.files.Expect(mapfiles.Path(p.stage.number, c))
	if err := p.stage.pool.peers.copy(ctx, p.stage.stage, p.is, &c, s); err != nil {
		expect()
		return done, errors.Join(err, s.unname(c))
	}
	return prepared{c, info, s, expect}, nil
}

// blobNumber is the number of a blob, or of a directory that is put. It follows from the file, so
// that what is put again, as it was not known what had become of it, is the same blob.
func blobNumber(node, name string, info os.FileInfo, sum uint64) uint64 {
	st := info.Sys().(*syscall.Stat_t)
	return xxhash.Sum64String(fmt.Sprintf("%s %d %d %d %x %s", node, st.Ino, st.Mtim.Sec, st.Mtim.Nsec, sum, name)) >> 4
}

// agree has the cluster give the names: a single one together with those that others put
// now.
func (p *putting) agree(ctx context.Context) error {
	if len(p.done) == 1 && len(p.command.Dirs) == 0 && !p.command.New {
		_, err := p.stage.pool.commits.Commit(ctx, p.is, p.done[0].commit)
		return err
	}
	for _, one := range p.done {
		p.command.Maps = append(p.command.Maps, one.commit)
	}
	slices.SortFunc(p.command.Maps, func(a, b state.Commit) int { return cmp.Compare(a.Map, b.Map) })
	_, err := p.stage.pool.agree(context.WithoutCancel(ctx), &p.command)
	return groupcommit.Unknown(err)
}

// takeBack takes the names of maps back.
func (p *putting) takeBack() (err error) {
	for _, one := range p.done {
		err = errors.Join(err, one.sealing.unname(one.commit))
	}
	return err
}

func (p *putting) end() {
	for _, one := range p.done {
		one.expect()
	}
}
