package pool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/groupcommit"
	"rankfs/shuffle/mapfiles"
)

// Attempts are the attempts of the stage that this node has, which programs write and commit.
type Attempts struct{ stageHere }

// Attempts are the attempts of the stage.
func (g *Stage) Attempts() Attempts { return Attempts{g.stageHere} }

// Dir is the directory of this node's attempts.
func (g Attempts) Dir() (string, error) {
	f, err := g.files()
	if err != nil {
		return "", err
	}
	if _, err := g.is(); err != nil {
		return "", err
	}
	return f.attempts(g.number)
}

// Begin says that there are attempts: the stage keeps its spec from then on.
func (g Attempts) Begin(ctx context.Context) error {
	is, err := g.is()
	if err != nil || is.Begun {
		return err
	}
	_, err = g.agree(ctx, &state.BeginStage{StageName: g.named()})
	return err
}

// Write has an attempt open to write until done is called; it is refused for one that is
// being committed, or may have been.
func (g Attempts) Write(a meta.Attempt) (done func(), err error) {
	f, err := g.files()
	if err != nil {
		return nil, err
	}
	if done, err = f.write(attemptPath(g.number, a)); err == nil {
		g.pool.tails.begin(f, g.stage, a)
	}
	return done, err
}

// Remove removes the file of an attempt, or its offsets.
func (g Attempts) Remove(a meta.Attempt, name string) error {
	f, err := g.files()
	if err != nil {
		return err
	}
	done, err := f.Use(attemptPath(g.number, a))
	if err != nil {
		return err
	}
	defer done()
	return f.maps.Memory().Remove(path.Join(mapfiles.StageDir(g.number), attemptsDir, name))
}

// hasWinner reports whether an attempt of a map has won. One that this node knows of may
// have been removed on another a moment ago.
func (g Attempts) hasWinner(ctx context.Context, number uint64) (bool, error) {
	if _, won := g.winner(number); !won {
		return false, nil
	}
	if err := g.Know(ctx); err != nil {
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
		if unknown := g.Know(ctx); unknown != nil {
			return unknown
		}
	}
	return err
}

// sealings is how often one rename seals an attempt: a spec is not changed so often by
// mistake.
const sealings = 3

// commit makes an attempt the map of its number, or finds that another one is.
//
//  1. Writers are kept out, and the file is sealed: a lease tells that none is left, and its
//     bytes are summed.
//  2. The quota of all copies is reserved, and the copies are made. Those on other nodes go on
//     from what tails have sent before.
//  3. The cluster agrees, in a group commit. If no answer comes, the attempt may have won: the
//     name of the map stays, and the program has to rename once more. After any other error that
//     name is taken back, and the attempt is as it was.
//  4. If it has won, only the name of the attempt goes. Else the file goes too, or with
//     exclusive the rename fails.
func (g Attempts) commit(ctx context.Context, a meta.Attempt, exclusive bool) error {
	f, err := g.files()
	if err != nil {
		return err
	}
	is, err := g.specified(ctx)
	if err != nil {
		return err
	}
	if !is.Specified() {
		return meta.Worded(unix.ENOTSUP, "stage %s has no spec yet; write one, as in: echo maps=16 parts=8 > spec", g.path())
	}
	switch won, err := g.hasWinner(ctx, a.Map); {
	case err != nil:
		return err
	case won:
		return g.discard(f, a, exclusive)
	}
	if is, err = g.numbered(ctx, is, a); err != nil {
		return err
	}
	defer f.Enter()()
	from := attemptPath(g.number, a)
	done, err := f.Commit(ctx, from)
	if err != nil {
		return fmt.Errorf("commit %s of stage %s: %w", a, g.path(), err)
	}
	defer done()
	s, err := f.seal(ctx, is, from)
	if err != nil {
		return fmt.Errorf("commit %s of stage %s: %w", a, g.path(), err)
	}
	defer s.close()
	if t := g.pool.tails.take(ctx, f, from); s.file == s.source {
		s.ahead = t
	}
	if _, err := f.promised.Reserve(ctx, ofQuota(g.job), from, s.size*int64(g.wanted(is.Spec))); err != nil {
		return fmt.Errorf("commit %s of stage %s: %w", a, g.path(), err)
	}
	c := state.Commit{Map: a.Map, Attempt: a.Number, Writer: g.config.Cluster.Self(), Size: s.size, Sum: s.table.Sum()}
	defer f.Expect(mapfiles.Path(g.number, c))()
	won, err := g.offer(ctx, is, a, &c, s)
	switch lost := won.Attempt != c.Attempt || won.Writer != c.Writer || won.Sum != c.Sum; {
	case errors.Is(err, groupcommit.ErrUnknown):
		return meta.Worded(context.DeadlineExceeded, "commit %s of stage %s: %w; rename it once more", a, g.path(), err)
	case err != nil:
		return errors.Join(err, s.unname(c))
	case lost && exclusive:
		return errors.Join(unix.EEXIST, s.unname(c))
	case lost:
		return errors.Join(s.unname(c), f.remove(g.number, a))
	}
	f.promised.Spent(from, c.Size*int64(len(c.Nodes)))
	defer func() {
		within, cancel := context.WithTimeout(ctx, agreeTime)
		defer cancel()
		g.pool.spill.relieve(within)
	}()
	return f.remove(g.number, a)
}

// offer has copies made of what is sealed, and the cluster agree to a commit of the map: to c,
// or to another that was before it.
func (g Attempts) offer(ctx context.Context, is state.PoolStage, a meta.Attempt, c *state.Commit, s *sealing) (won state.Commit, err error) {
	if err := g.pool.peers.copy(ctx, g.stage, is, c, s); err != nil {
		return won, fmt.Errorf("commit %s of stage %s: %w", a, g.path(), err)
	}
	if err := ctx.Err(); err != nil {
		return won, err
	}
	return g.pool.commits.Commit(ctx, is, *c)
}

// numbered is the stage, which has a map of that number: this node may not have heard of its
// last spec.
func (g Attempts) numbered(ctx context.Context, is state.PoolStage, a meta.Attempt) (state.PoolStage, error) {
	if a.Map < is.Numbers() {
		return is, nil
	}
	err := g.Know(ctx)
	if err == nil {
		is, err = g.is()
	}
	if err == nil && a.Map >= is.Numbers() {
		err = meta.Worded(unix.EDOM, "%s is of no map of stage %s, which has %d maps from 0 on; give it the number of one, or write another maps= into spec before there is an attempt",
			a, g.path(), is.Numbers())
	}
	return is, err
}

// discard removes an attempt of a map that another has won; with exclusive it is refused.
func (g Attempts) discard(f *files, a meta.Attempt, exclusive bool) error {
	if exclusive {
		return unix.EEXIST
	}
	from := attemptPath(g.number, a)
	if _, err := f.maps.Memory().Lstat(from); err != nil {
		return err
	}
	if won, ok := g.winner(a.Map); ok && won.Attempt == a.Number && won.Writer == g.config.Cluster.Self() {
		f.promised.Spent(from, won.Size*int64(len(won.Nodes)))
	}
	return f.remove(g.number, a)
}

// remove takes the names of an attempt away, that of its offsets first: as long as the
// attempt is there it can be renamed once more.
func (f *files) remove(stage uint64, a meta.Attempt) error {
	err := f.maps.Memory().Remove(attemptPath(stage, a) + mapfiles.Idx)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.maps.Memory().Remove(attemptPath(stage, a)))
}
