package mapfiles

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"rankfs/meta/state"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/openmaps"
	"rankfs/shuffle/pieces"
)

// The places in which a job has maps, and what is open of these.
type places struct {
	memory Store         // with all other files of the job
	disk   *Store        // nil if there is none
	open   openmaps.Maps // to be read
}

// all is memory, and then the disk.
func (p *places) all() []Store {
	all := []Store{p.memory}
	if p.disk != nil {
		all = append(all, *p.disk)
	}
	return all
}

// Has reports whether a map is here. It is not known while the disk does not answer, or its
// directory is gone.
func (p *places) Has(ctx context.Context, stage uint64, c state.Commit) (has bool, err error) {
	name := Path(stage, c)
	for _, s := range p.all() {
		size, err := s.size(ctx, name)
		switch {
		case err == nil:
			return size == c.Size || s.hasTail(name, size, c), nil
		case err == disk.ErrSilent || err == disk.ErrGone || ctx.Err() != nil:
			return false, err
		}
	}
	return false, nil
}

// Lacks reports whether it is known that a map is not here.
func (p *places) Lacks(ctx context.Context, stage uint64, c state.Commit) bool {
	has, err := p.Has(ctx, stage, c)
	return !has && err == nil
}

// openMap opens the file of a map and that of its table, wherever they are: both in one place,
// as in memory some of a map may stand behind its table.
func (p *places) openMap(name string) (file, table *os.File, onDisk bool, err error) {
	for _, s := range p.all() {
		if file, table, err = s.openMap(name); !errors.Is(err, fs.ErrNotExist) {
			return file, table, s.disk != nil, err
		}
	}
	return nil, nil, false, err
}

// openMap opens the file of a map and that of its table.
func (s Store) openMap(name string) (file, table *os.File, err error) {
	both, err := disk.Ask(context.Background(), s.disk, func() (both [2]*os.File, err error) {
		if both[0], err = openOwn(s.Path(name), os.O_RDONLY, 0); err != nil {
			return both, err
		}
		if both[1], err = openOwn(s.Path(name+Idx), os.O_RDONLY, 0); err != nil {
			both[0].Close()
			both[0] = nil
		}
		return both, err
	})
	return both[0], both[1], err
}

// hasTail reports whether what a file lacks of a map stands behind the map's table.
func (s Store) hasTail(name string, size int64, c state.Commit) bool {
	if s.disk != nil || size > c.Size {
		return false
	}
	info, err := s.Lstat(name + Idx)
	if err != nil {
		return false
	}
	table := info.Size() + size - c.Size
	return table > 0 && table%pieces.RowBytes == 0
}
