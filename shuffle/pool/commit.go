package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
)

// Attempts are those of the stage that this node has, which programs write and commit.
type Attempts struct{ stage }

// Attempts are those of the stage.
func (g *Stage) Attempts() Attempts { return Attempts{g.stage} }

// Dir is the directory of this node's attempts.
func (g Attempts) Dir() (string, error) {
	f, err := g.job.files()
	if err != nil {
		return "", err
	}
	if _, err := g.is(); err != nil {
		return "", err
	}
	return f.attempts(g.number)
}

// Write has an attempt open to write until done is called; it is refused for one that is
// being committed, or may have been.
func (g Attempts) Write(a meta.Attempt) (done func(), err error) {
	f, err := g.job.files()
	if err != nil {
		return nil, err
	}
	return f.write(attemptPath(g.number, a))
}

// Remove removes the file of an attempt, or its offsets.
func (g Attempts) Remove(a meta.Attempt, name string) error {
	f, err := g.job.files()
	if err != nil {
		return err
	}
	done, err := f.use(attemptPath(g.number, a))
	if err != nil {
		return err
	}
	defer done()
	return f.root.Remove(path.Join(stageDir(g.number), attemptsDir, name))
}

// hasWinner reports whether an attempt of a map has won. One that this node knows of may
// have been removed on another a moment ago.
func (g Attempts) hasWinner(ctx context.Context, number uint64) (bool, error) {
	if _, won := g.winner(number); !won {
		return false, nil
	}
	if err := g.job.pool.Know(ctx); err != nil {
		return false, err
	}
	_, won := g.winner(number)
	return won, nil
}

// Commit makes an attempt the map, if no other was before it. If one was, this one is
// discarded, which is no error; or with exclusive it is refused, and stays.
//
// Nothing has happened when it is interrupted before the cluster is asked. After that the
// attempt keeps its name until it is known what became of it: to ask again is to learn.
//
// If the stage was given another spec meanwhile, or was reset, the attempt is sealed anew: by
// the spec before, it may have other parts, or too few copies.
func (g Attempts) Commit(ctx context.Context, a meta.Attempt, exclusive bool) (err error) {
	for range sealings {
		err = g.commit(ctx, a, exclusive)
		if !errors.Is(err, meta.ErrOvertaken) && !errors.Is(err, meta.ErrStale) {
			return err
		}
		if unknown := g.job.pool.Know(ctx); unknown != nil {
			return unknown
		}
	}
	return err
}

// sealings is how often one rename seals an attempt: nobody changes a spec so often by
// mistake.
const sealings = 3

func (g Attempts) commit(ctx context.Context, a meta.Attempt, exclusive bool) error {
	f, err := g.job.files()
	if err != nil {
		return err
	}
	is, err := g.specified(ctx)
	if err != nil {
		return err
	}
	if !is.Specified() {
		return fmt.Errorf("stage %s %w: it has no spec yet; write one, as in: echo maps=16 parts=8 > spec", g.path(), meta.ErrInvalid)
	}
	switch won, err := g.hasWinner(ctx, a.Map); {
	case err != nil:
		return err
	case won:
		return g.discard(f, a, exclusive)
	}
	defer f.enter()()
	from := attemptPath(g.number, a)
	done, err := f.commit(ctx, from)
	if err != nil {
		return fmt.Errorf("commit %s of stage %s: %w", a, g.path(), err)
	}
	defer done()
	s, err := f.seal(ctx, is, from)
	if err != nil {
		return fmt.Errorf("commit %s of stage %s: %w", a, g.path(), err)
	}
	defer s.close()
	self := g.job.pool.config.Cluster.Self()
	c := state.Commit{Map: a.Map, Attempt: a.Number, Writer: self, Size: s.size, Sum: s.table.sum(), Nodes: []string{self}}
	defer f.expect(mapPath(g.number, c))()
	if err := s.name(c, is.Spec.Durable); err != nil {
		return fmt.Errorf("commit %s of stage %s: %w", a, g.path(), err)
	}
	if err := g.copy(ctx, is, &c, s); err != nil {
		return errors.Join(fmt.Errorf("commit %s of stage %s: %w", a, g.path(), err), s.unname(c))
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), s.unname(c))
	}
	won, err := g.job.pool.commits.commit(ctx, is, c)
	switch {
	case errors.Is(err, errUnknown):
		return meta.Worded(context.DeadlineExceeded, "commit %s of stage %s: %w; rename it once more", a, g.path(), err)
	case err != nil:
		return errors.Join(err, s.unname(c))
	}
	if won.Attempt != c.Attempt || won.Writer != c.Writer || won.Sum != c.Sum {
		if exclusive {
			return errors.Join(unix.EEXIST, s.unname(c))
		}
		return errors.Join(s.unname(c), f.remove(g.number, a))
	}
	defer func() {
		within, cancel := context.WithTimeout(ctx, agreeTime)
		defer cancel()
		g.job.pool.spill.relieve(within)
	}()
	return f.remove(g.number, a)
}

// discard removes an attempt of a map that another has won; with exclusive it is refused.
func (g Attempts) discard(f *files, a meta.Attempt, exclusive bool) error {
	if exclusive {
		return unix.EEXIST
	}
	if _, err := f.root.Lstat(attemptPath(g.number, a)); err != nil {
		return err
	}
	return f.remove(g.number, a)
}

// remove takes the names of an attempt away, that of its offsets first: as long as the
// attempt is there it can be renamed once more.
func (f *files) remove(stage uint64, a meta.Attempt) error {
	err := f.root.Remove(attemptPath(stage, a) + idx)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.root.Remove(attemptPath(stage, a)))
}

// A sealing is a file that nobody writes any more, as it is now.
type sealing struct {
	files  *files
	stage  uint64
	from   string
	file   *os.File
	table  table
	size   int64
	again  bool // it has the name of a map since an earlier time, and may be committed
	agreed bool // it is committed
}

// seal waits until nobody can write a file, and sums it. A lease tells: the kernel
// refuses it as long as there is a descriptor that writes, or a mapping.
func (f *files) seal(ctx context.Context, g state.PoolStage, name string) (*sealing, error) {
	file, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	s := &sealing{files: f, stage: g.Number, from: name, file: file}
	if err := s.lease(ctx); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	info, err := file.Stat()
	if err == nil {
		s.size = info.Size()
		s.table, err = f.sum(g, name, file, s.size)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// sum makes the table of a file: of an attempt by its offsets, of a blob as one piece.
func (f *files) sum(g state.PoolStage, name string, file io.ReaderAt, size int64) (table, error) {
	o, err := whole(size), error(nil)
	if !g.Blobs() {
		o, err = readOffsets(f.root, name+idx, g.Spec.Parts, size)
	}
	if err != nil {
		return nil, err
	}
	return tableOf(io.NewSectionReader(file, 0, size), o)
}

func (s *sealing) lease(ctx context.Context) error {
	deadline := time.Now().Add(leaseTime)
	for {
		_, err := unix.FcntlInt(s.file.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EBUSY):
			return fmt.Errorf("lease: %w", err)
		case time.Now().After(deadline):
			return errWritten
		case !sleep(ctx, time.Millisecond):
			return ctx.Err()
		}
	}
}

// close gives the lease back. Who opens the file to write it from here on is refused by
// its second name.
func (s *sealing) close() error {
	_, err := unix.FcntlInt(s.file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return errors.Join(err, s.file.Close())
}

// name gives the file the name of a map, beside a table; or, if it has to last, has its
// bytes under that name on the disk. Where it has the name already it may have been agreed
// on, and keeps it whatever comes.
func (s *sealing) name(c state.Commit, lasting bool) error {
	to := mapPath(s.stage, c)
	s.again = s.files.hasMap(s.stage, c)
	switch {
	case lasting:
		return s.files.take(true, to, s.table, io.NewSectionReader(s.file, 0, s.size))
	case s.again:
		return nil
	}
	memory := s.files.store()
	if err := memory.place(to+idx, int64(len(s.table)), bytes.NewReader(s.table), false); err != nil {
		return err
	}
	if err := memory.Link(s.from, to); err != nil {
		return errors.Join(err, memory.Remove(to+idx))
	}
	return nil
}

// unname takes that back, unless it was so before.
func (s *sealing) unname(c state.Commit) error {
	if !s.again {
		s.files.drop(mapPath(s.stage, c))
	}
	return nil
}
