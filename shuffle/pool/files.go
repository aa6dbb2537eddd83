package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/turns"
)

// files are the files of a job on this node: a file system in memory, mounted on a directory
// that only the daemon can enter, and a directory on the disk, if there is one.
type files struct {
	*memory.Share
	mapFiles
	number     uint64
	work       *turns.Shares
	inspecting chan struct{} // has room for one
	promised   promises
	tailed     tailed
	spread     spread
}

const (
	scratchDir  = "scratch"
	holdFile    = "hold"
	attemptsDir = "attempts"
	mapsDir     = "maps"
	idx         = ".idx"
	incoming    = ".incoming" // what is not whole yet
)

// makeFiles mounts a file system, which has hardly any room yet, unless an earlier daemon
// did.
func makeFiles(dir string, j state.PoolJob) (*files, error) {
	if f, err := openFiles(dir, j.Number); err == nil {
		return f, nil
	}
	if err := os.MkdirAll(dir, 0700); err != nil {
		return nil, err
	}
	options := fmt.Sprintf("mode=0700,size=%d,huge=within_size", memory.Page())
	if err := unix.Mount("rankfs-pool", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return nil, fmt.Errorf("mount a tmpfs: %w", err)
	}
	var errs []error
	for _, name := range []string{meta.BlobDir, scratchDir} { // this last: it says that all is there
		errs = append(errs, os.Mkdir(filepath.Join(dir, name), 0700), os.Lchown(filepath.Join(dir, name), int(j.UID), int(j.GID)))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH), os.Remove(dir))
	}
	return openFiles(dir, j.Number)
}

// openFiles opens a file system that is mounted. A directory without one, or with one
// that was not finished, has nothing in it that was agreed on, and goes.
func openFiles(dir string, number uint64) (*files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if _, err := root.Lstat(scratchDir); err != nil {
		unix.Unmount(dir, unix.MNT_DETACH) // EINVAL if nothing is
		return nil, errors.Join(errors.New("nothing is mounted there any more"), root.Close(), os.Remove(dir))
	}
	f := &files{Share: &memory.Share{Dir: dir}, number: number, inspecting: make(chan struct{}, 1)}
	f.promised.asking = make(chan struct{}, 1)
	f.init(root)
	return f, nil
}

// end frees the files: of memory with one umount. What programs have open stays theirs.
func (f *files) end() error {
	err := errors.Join(f.close(), unix.Unmount(f.Dir, unix.MNT_DETACH), os.Remove(f.Dir))
	if f.disk != nil {
		err = errors.Join(err, f.disk.disk.Drop(f.number))
	}
	return err
}

func (f *files) close() error {
	f.open.End()
	f.tailed.end()
	err := f.root.Close()
	if f.disk != nil {
		err = errors.Join(err, f.disk.Close())
	}
	return err
}

// attempts is the directory of a stage's attempts, which is made if it is not there, after
// that of the maps that they become. It goes with the stage, whose number no other gets.
func (f *files) attempts(stage uint64) (string, error) {
	dir := path.Join(stageDir(stage), attemptsDir)
	if f.hasStage(stage) {
		return dir, nil
	}
	err := errors.Join(f.root.MkdirAll(path.Join(stageDir(stage), mapsDir), 0700), f.root.MkdirAll(dir, 0700))
	if err == nil {
		f.madeStage(stage, true)
	}
	return dir, err
}

func (f *files) attemptNames(stage uint64) (names []string, err error) {
	return namesIn(f.root, path.Join(stageDir(stage), attemptsDir))
}

// hasOwn reports whether programs have files there that no other node has, beside attempts: in
// scratch, or such as may become blobs.
func (f *files) hasOwn() (bool, error) {
	scratch, err := namesIn(f.root, scratchDir)
	if err != nil || len(scratch) > 0 {
		return true, err
	}
	staged, err := namesIn(f.root, meta.BlobDir)
	return slices.ContainsFunc(staged, func(name string) bool { return name[0] == '.' }), err
}

// attemptPath is where an attempt is written.
func attemptPath(stage uint64, a meta.Attempt) string {
	return path.Join(stageDir(stage), attemptsDir, a.String())
}

// keepStages gives up the directories of all other stages, once it lasts that these are no
// more, and reports whether it could.
func (f *files) keepStages(ctx context.Context, stages func() []state.PoolStage, lasts func() error) (kept bool) {
	kept = true
	for _, s := range f.stores() {
		names, err := s.names(ctx, ".") // before it is asked what is agreed on
		if err != nil {
			return false
		}
		keep := map[string]bool{scratchDir: true, meta.BlobDir: true}
		for _, g := range stages() {
			keep[stageDir(g.Number)] = true
		}
		names = slices.DeleteFunc(names, func(name string) bool { return keep[name] })
		if len(names) > 0 && lasts() != nil {
			return false
		}
		for _, name := range names {
			f.tailed.below(name + "/")
			if number, err := strconv.ParseUint(name, 10, 64); err == nil {
				f.spread.forget(number)
				f.madeStage(number, false)
			}
			kept = s.removeAll(name) == nil && kept
		}
	}
	return kept
}
