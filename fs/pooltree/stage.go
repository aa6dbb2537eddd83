package pooltree

import (
	"context"
	"path"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/fs/errnos"
	"rankfs/meta"
)

// A stageDir is one stage of a job.
type stageDir struct {
	fusefs.Inode
	noOthers
	ofStage
	isLane bool
}

// Getattr implements fusefs.NodeGetattrer.
func (n *stageDir) Getattr(ctx context.Context, h fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.job.Getattr(ctx, h, out)
}

// Setattr implements fusefs.NodeSetattrer.
func (n *stageDir) Setattr(ctx context.Context, h fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return n.job.Setattr(ctx, h, in, out)
}

// Statfs implements fusefs.NodeStatfser.
func (n *stageDir) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	return n.job.Statfs(ctx, out)
}

// Lookup implements fusefs.NodeLookuper.
func (n *stageDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if a, ok := attempt(name); ok {
		return n.lookUpAttempt(ctx, a, name, out)
	}
	if number, ok := meta.ParseMap(name); ok {
		m, err := n.stage.Maps.Find(ctx, number)
		if err != nil {
			return nil, n.errno("look up map", name, err)
		}
		stable, generation := n.stable(inoMap | n.stage.Number()<<20 | number)
		f := &mapFile{current: current{&n.ofStage, generation}, number: number, is: m}
		f.attributes(&out.Attr)
		return n.NewInode(ctx, f, stable), 0
	}
	if p, ok := meta.ParsePart(name); ok {
		return n.lookUpPart(ctx, p, out)
	}
	if number, ok := parseLane(name); ok && !n.isLane {
		return n.lane(ctx, number, out), 0
	}
	text := &stageText{stage: &n.ofStage, name: name}
	if name != nameSpec && name != nameState {
		return nil, syscall.ENOENT
	}
	text.attributes(&out.Attr)
	kind := uint64(1)
	if name == nameState {
		kind = 2
	}
	return n.NewInode(ctx, text, fusefs.StableAttr{Mode: syscall.S_IFREG, Ino: inoText | n.stage.Number()<<2 | kind}), 0
}

func (n *stageDir) lookUpAttempt(ctx context.Context, a meta.Attempt, name string, out *fuse.EntryOut) (in *fusefs.Inode, errno syscall.Errno) {
	errno = n.inAttempts(func(root ownFiles, dir string) error {
		f, stable, err := n.attempt(root, dir, name, a, out)
		if err == nil {
			in = n.NewInode(ctx, f, stable)
		}
		return err
	})
	return in, errno
}

// lookUpPart finds a part, or its offsets. It is there from the beginning, so that an
// open can wait for it.
func (n *stageDir) lookUpPart(ctx context.Context, p meta.Part, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	f := &partFile{current: current{stage: &n.ofStage}, part: p}
	stable, generation := n.stable(f.ino())
	f.generation = generation
	if errno := f.attributes(ctx, &out.Attr); errno != 0 {
		return nil, errno
	}
	// A part of some maps has no number of its own; inodes of one name are one.
	return n.NewInode(ctx, f, stable), 0
}

// Create implements fusefs.NodeCreater: programs create attempts, and nothing else.
func (n *stageDir) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (in *fusefs.Inode, h fusefs.FileHandle, _ uint32, errno syscall.Errno) {
	a, ok := attempt(name)
	if !ok {
		return nil, nil, 0, n.errno("create", name, meta.Worded(meta.ErrInvalid,
			"the files of a stage have fixed names: write an attempt into .map-MMMMMM.A, as .map-000000.0, and rename it to map-MMMMMM; MMMMMM has six digits, and A is less than 2^32"))
	}
	errno = n.inAttempts(func(root ownFiles, dir string) error {
		if err := n.stage.Attempts.Begin(ctx); err != nil {
			return err
		}
		done, err := n.writes(a, name, flags|unix.O_WRONLY)
		if err != nil {
			return err
		}
		w, err := createWritten(root, path.Join(dir, name), flags, mode)
		if err != nil {
			done()
			return err
		}
		w.done, w.reserve = done, n.reserving(name)
		if caller, ok := fuse.FromContext(ctx); ok {
			err = root.Lchown(path.Join(dir, name), int(caller.Uid), int(caller.Gid))
		}
		if err == nil {
			var f *attemptFile
			var stable fusefs.StableAttr
			if f, stable, err = n.attempt(root, dir, name, a, out); err == nil {
				in = n.NewInode(ctx, f, stable)
			}
		}
		if err != nil {
			w.Release(ctx)
			return err
		}
		h = w
		return nil
	})
	return in, h, 0, errno
}

// Unlink implements fusefs.NodeUnlinker. The files that each stage has go with it.
func (n *stageDir) Unlink(ctx context.Context, name string) syscall.Errno {
	if a, ok := attempt(name); ok {
		return errnos.Plain(n.stage.Attempts.Remove(a, name))
	}
	if number, ok := meta.ParseMap(name); ok {
		return n.errno("remove map", name, n.stage.Maps.Remove(ctx, number))
	}
	return 0
}

// Rename implements fusefs.NodeRenamer: it commits an attempt. The offsets go along.
func (n *stageDir) Rename(ctx context.Context, name string, to fusefs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	a, ok := meta.ParseAttempt(name)
	number, isMap := meta.ParseMap(newName)
	if !ok || flags&^unix.RENAME_NOREPLACE != 0 {
		return syscall.EPERM
	}
	if target, same := to.(*stageDir); !isMap || !same || target.stage.Number() != n.stage.Number() {
		return n.errno("commit", name, meta.Worded(meta.ErrDenied, "%s cannot become %s: rename it to %s, in its stage", name, newName, meta.MapName(a.Map)))
	}
	if a.Map != number {
		return n.errno("commit", name, meta.Worded(unix.EDOM, "%s cannot become %s: it is an attempt of another map; rename it to %s", name, newName, meta.MapName(a.Map)))
	}
	return n.errno("commit", name, n.stage.Attempts.Commit(ctx, a, flags != 0))
}

// Readdir implements fusefs.NodeReaddirer. Parts are not listed: there may be a million.
func (n *stageDir) Readdir(ctx context.Context) (fusefs.DirStream, syscall.Errno) {
	entries := []fuse.DirEntry{{Name: nameSpec, Mode: syscall.S_IFREG}, {Name: nameState, Mode: syscall.S_IFREG}}
	errno := n.inAttempts(func(root ownFiles, dir string) error {
		own, err := list(root, dir)
		entries = append(entries, own...)
		return err
	})
	if errno != 0 {
		return nil, errno
	}
	numbers, err := n.stage.Maps.List(ctx)
	for _, number := range numbers {
		entries = append(entries, fuse.DirEntry{Name: meta.MapName(number), Mode: syscall.S_IFREG})
	}
	return fusefs.NewListDirStream(entries), n.errno("list stage", "", err)
}

// lane is the stage once more. The name goes with the stage.
func (n *stageDir) lane(ctx context.Context, number uint64, out *fuse.EntryOut) *fusefs.Inode {
	d := &stageDir{ofStage: n.ofStage, isLane: true}
	d.attributes(&out.Attr)
	out.SetAttrTimeout(attributesStay)
	out.SetEntryTimeout(attributesStay)
	return n.NewInode(ctx, d, fusefs.StableAttr{Mode: syscall.S_IFDIR, Ino: inoStage | (number+1)<<laneBits | n.stage.Number()})
}

// Rmdir implements fusefs.NodeRmdirer: a lane goes with its stage.
func (n *stageDir) Rmdir(context.Context, string) syscall.Errno { return syscall.EPERM }
