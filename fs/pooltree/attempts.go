package pooltree

import (
	"context"
	"path"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/fs/errnos"
	"rankfs/meta"
)

// attempt has the name of an attempt's file, or of its offsets'.
func attempt(name string) (meta.Attempt, bool) {
	return meta.ParseAttempt(strings.TrimSuffix(name, idx))
}

// attempt is a file of an attempt, after a look at it.
func (n *ofStage) attempt(root ownFiles, dir, name string, a meta.Attempt, out *fuse.EntryOut) (f *attemptFile, stable fusefs.StableAttr, err error) {
	info, err := root.Lstat(path.Join(dir, name))
	if err != nil {
		return nil, stable, err
	}
	st := info.Sys().(*syscall.Stat_t)
	out.Attr.FromStat(st)
	out.SetAttrTimeout(scratchTimeout)
	return &attemptFile{stage: n, attempt: a, name: name}, n.job.stable(st), nil
}

// inAttempts calls f with the job's files and the directory of this node's attempts.
func (n *ofStage) inAttempts(f func(root ownFiles, dir string) error) syscall.Errno {
	root, err := n.job.job.Files()
	if err != nil {
		return n.errno("look up files of job", "", err)
	}
	dir, err := n.stage.Attempts.Dir()
	if err != nil {
		return n.errno("look up attempts", "", err)
	}
	return errnos.Plain(f(ownFiles(root.Name()), dir))
}

// An attemptFile is the output of a map task, while it is written.
type attemptFile struct {
	fusefs.Inode
	stage   *ofStage
	attempt meta.Attempt
	name    string
}

// Getattr implements fusefs.NodeGetattrer. An attempt that was committed has its handles
// still, by which it is asked for.
func (n *attemptFile) Getattr(_ context.Context, h fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if w, ok := h.(*written); ok {
		return w.attributes(out)
	}
	return n.stage.inAttempts(func(root ownFiles, dir string) error {
		info, err := root.Lstat(path.Join(dir, n.name))
		if err != nil {
			return err
		}
		out.FromStat(info.Sys().(*syscall.Stat_t))
		return nil
	})
}

// Setattr implements fusefs.NodeSetattrer.
func (n *attemptFile) Setattr(ctx context.Context, h fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	errno := n.stage.inAttempts(func(root ownFiles, dir string) error {
		done, err := n.stage.stage.Attempts.Write(n.attempt)
		if err != nil {
			return err
		}
		defer done()
		if err := resize(root, path.Join(dir, n.name), h, in); err != nil {
			return err
		}
		return setAttributes(root, path.Join(dir, n.name), h, in)
	})
	if errno != 0 {
		return errno
	}
	return n.Getattr(ctx, h, out)
}

// Open implements fusefs.NodeOpener.
func (n *attemptFile) Open(_ context.Context, flags uint32) (h fusefs.FileHandle, _ uint32, errno syscall.Errno) {
	errno = n.stage.inAttempts(func(root ownFiles, dir string) error {
		done, err := n.stage.writes(n.attempt, n.name, flags)
		if err != nil {
			return err
		}
		w, err := openWritten(root, path.Join(dir, n.name), flags)
		if err != nil {
			done()
			return err
		}
		w.done, w.reserve, h = done, n.stage.reserving(n.name), w
		return nil
	})
	return h, 0, errno
}

// reserving has a file of an attempt reserve bytes.
func (n *ofStage) reserving(name string) func(context.Context, int64) (func(), error) {
	return func(ctx context.Context, bytes int64) (func(), error) {
		undo, err := n.stage.Attempts.Reserve(ctx, name, bytes)
		if err != nil {
			n.stage.Refused("allocate "+name, err)
		}
		return undo, err
	}
}

// writes says that a file of an attempt is opened, and to write if the flags of the open say
// so, until done is called.
func (n *ofStage) writes(a meta.Attempt, name string, flags uint32) (done func(), err error) {
	written := func() {}
	if writes(flags) {
		if err = n.stage.Attempts.MayGrow(1); err == nil {
			written, err = n.stage.Attempts.Write(a)
		}
		if err != nil {
			n.stage.Refused("write "+name, err)
			return nil, err
		}
	}
	used := use(n.job.job.Uses, flags)
	return func() { written(); used() }, nil
}
