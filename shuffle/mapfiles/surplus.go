package mapfiles

import (
	"context"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"rankfs/meta/state"
	"rankfs/shuffle/access"
)

// MapNames are the names of files of a stage's maps there.
func (s Store) MapNames(ctx context.Context, stage uint64) ([]string, error) {
	return s.Names(ctx, Dir(stage))
}

// Surplus are those of these names that are of none of the maps that the node need have. A map
// that it need have is agreed on.
func (f *Files) Surplus(stage uint64, names []string, need iter.Seq[state.Commit]) (all []string) {
	if len(names) == 0 {
		return nil
	}
	keep := make(map[string]bool)
	for c := range need {
		keep[path.Base(Path(stage, c))] = true
	}
	for _, name := range names {
		if keep[mapOf(name)] {
			f.memory.used.Agreed(mapFile(stage, name))
		}
		if !keep[mapOf(name)] || strings.HasSuffix(name, incoming) {
			all = append(all, name)
		}
	}
	return all
}

// A Sweep gives up files of maps of a stage, in one place.
type Sweep struct {
	of    *Files
	in    Store
	stage uint64
	names []string
	here  map[uint64]uint64 // how many of the names each file has, by its inode
}

// Sweep is one of the files of these names in a place.
func (f *Files) Sweep(in Store, stage uint64, names []string) Sweep {
	return Sweep{f, in, stage, names, in.count(stage, names)}
}

// Free are the names that are not of what may come to be a map that is agreed on.
func (s Sweep) Free() []string {
	return slices.DeleteFunc(slices.Clone(s.names), func(name string) bool {
		return s.in.used.Look(func(h access.Held) bool { return s.expected(h, name) })
	})
}

// GiveUp removes a file, unless that has changed meanwhile.
func (s Sweep) GiveUp(name string) {
	own := mapFile(s.stage, name)
	s.in.used.GiveUp(own, func(h access.Held) bool { return s.expected(h, name) }, func() { s.in.remove(path.Join(Dir(s.stage), name)) })
	s.of.forget(own)
}

// expected reports whether a file may come to be one of a map that is agreed on: it is being
// written, its commit was on its way lately, or it has a name elsewhere, by which it may be
// committed again.
func (s Sweep) expected(h access.Held, name string) bool {
	own := mapFile(s.stage, name)
	if strings.HasSuffix(name, incoming) {
		return h.Used(path.Join(Dir(s.stage), name))
	}
	if h.Expected(own) || s.in.disk != nil { // where files have one name
		return h.Expected(own)
	}
	info, err := s.in.Lstat(own)
	return err == nil && stat(info).Nlink > max(1, s.here[stat(info).Ino])
}

// count is the number of these names that each file has, by its inode.
func (s Store) count(stage uint64, names []string) map[uint64]uint64 {
	here := make(map[uint64]uint64)
	if s.disk != nil {
		return here
	}
	for _, name := range names {
		if info, err := s.Lstat(path.Join(Dir(stage), name)); err == nil {
			here[stat(info).Ino]++
		}
	}
	return here
}

func stat(info os.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }
