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
	"sync"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/access"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/quota"
	"rankfs/shuffle/turns"
)

// files are the files of a job on this node: a file system in memory, mounted on a directory
// that only the daemon can enter, and a directory on the disk, if there is one.
//
// They are used by all goroutines that serve programs and other nodes, and have no lock of their
// own. The fields are set before the files are in the table of local, and stay; what changes has a
// lock in its own type. Goroutines that make, name or remove one file at once meet in the file
// system.
type files struct {
	*memory.Share
	access.Names
	root       *os.Root // in memory
	maps       *mapfiles.Files
	disk       *disk.Disk // nil if they have nothing there
	number     uint64
	made       made
	work       *turns.Shares
	inspecting chan struct{} // has room for one
	promised   *quota.Promises
	spread     spread
}

const (
	scratchDir  = "scratch"
	holdFile    = "hold"
	attemptsDir = "attempts"
)

// commitTime is how long after its last copy was sent a commit is agreed on, or never.
const commitTime = 2 * agreeTime

// made are the stages whose directories are known to be there. The lock guards the table; they are
// made without it.
type made struct {
	mu     sync.Mutex
	stages map[uint64]bool
}

func (m *made) has(stage uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stages[stage]
}

func (m *made) add(stage uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stages == nil {
		m.stages = make(map[uint64]bool)
	}
	m.stages[stage] = true
}

func (m *made) forget(stage uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.stages, stage)
}

// makeFiles mounts a file system, which has hardly any room yet, unless an earlier daemon
// did.
func makeFiles(dir string, j state.PoolJob, ram *memory.Budget) (*files, error) {
	if f, err := openFiles(dir, j.Number, ram); err == nil {
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
	return openFiles(dir, j.Number, ram)
}

// openFiles opens a file system that is mounted. A directory without one, or with one
// that was not finished, has nothing in it that was agreed on, and goes.
func openFiles(dir string, number uint64, ram *memory.Budget) (*files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if _, err := root.Lstat(scratchDir); err != nil {
		unix.Unmount(dir, unix.MNT_DETACH) // EINVAL if nothing is
		return nil, errors.Join(errors.New("nothing is mounted there any more"), root.Close(), os.Remove(dir))
	}
	f := &files{Share: &memory.Share{Dir: dir}, root: root, number: number, inspecting: make(chan struct{}, 1)}
	f.Names.Init(commitTime)
	f.maps = mapfiles.New(root, ram, &f.Names)
	return f, nil
}

// end frees the files: of memory with one umount. What programs have open stays theirs.
func (f *files) end() error {
	err := errors.Join(f.close(), unix.Unmount(f.Dir, unix.MNT_DETACH), os.Remove(f.Dir))
	if f.disk != nil {
		err = errors.Join(err, f.disk.Drop(f.number, f.Uses))
	}
	return err
}

func (f *files) close() error {
	return errors.Join(f.maps.Close(), f.root.Close())
}

// attempts is the directory of a stage's attempts, which is made if it is not there, after
// that of the maps that they become. It goes with the stage, whose number no other gets.
func (f *files) attempts(stage uint64) (string, error) {
	dir := path.Join(mapfiles.StageDir(stage), attemptsDir)
	if f.made.has(stage) {
		return dir, nil
	}
	err := errors.Join(f.root.MkdirAll(mapfiles.Dir(stage), 0700), f.root.MkdirAll(dir, 0700))
	if err == nil {
		f.made.add(stage)
	}
	return dir, err
}

func (f *files) attemptNames(stage uint64) (names []string, err error) {
	return meta.NamesIn(f.root, path.Join(mapfiles.StageDir(stage), attemptsDir))
}

// hasOwn reports whether programs have files there that no other node has, beside attempts: in
// scratch, or such as may become blobs.
func (f *files) hasOwn() (bool, error) {
	scratch, err := meta.NamesIn(f.root, scratchDir)
	if err != nil || len(scratch) > 0 {
		return true, err
	}
	staged, err := meta.NamesIn(f.root, meta.BlobDir)
	return slices.ContainsFunc(staged, func(name string) bool { return name[0] == '.' }), err
}

// attemptPath is where an attempt is written.
func attemptPath(stage uint64, a meta.Attempt) string {
	return path.Join(mapfiles.StageDir(stage), attemptsDir, a.String())
}

// keepStages gives up the directories of all other stages, once it lasts that these are no
// more, and reports whether it could.
func (f *files) keepStages(ctx context.Context, stages func() []state.PoolStage, lasts func() error) (kept bool) {
	kept = true
	for _, s := range f.maps.Stores() {
		names, err := s.Names(ctx, ".") // before it is asked what is agreed on
		if err != nil {
			return false
		}
		keep := map[string]bool{scratchDir: true, meta.BlobDir: true}
		for _, g := range stages() {
			keep[mapfiles.StageDir(g.Number)] = true
		}
		names = slices.DeleteFunc(names, func(name string) bool { return keep[name] })
		if len(names) > 0 && lasts() != nil {
			return false
		}
		for _, name := range names {
			f.maps.Tails.GiveUpBelow(name + "/")
			if number, err := strconv.ParseUint(name, 10, 64); err == nil {
				f.spread.forget(number)
				f.made.forget(number)
			}
			kept = s.RemoveAll(name) == nil && kept
		}
	}
	return kept
}
