package mapfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/access"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/openmaps"
	"rankfs/shuffle/pieces"
)

// Files are the files of the maps that a job has on this node: in memory, or on the disk.
type Files struct {
	Reader
	Tails *Tails // what came of maps before they were committed
}

// New are the files in dir, a directory in memory, of which all jobs have ram together. used says
// by their names which of the job's files are in use.
func New(dir *os.Root, ram *memory.Budget, used *access.Names) *Files {
	f := &Files{}
	f.memory = Store{dir, nil, ram, used, &f.open}
	f.mu.tables = make(map[string]bool)
	f.Tails = &Tails{in: &f.places}
	return f
}

// AddDisk has a directory on a disk, too, which is closed with the files.
func (f *Files) AddDisk(d *disk.Disk, dir *os.Root) {
	f.disk = &Store{dir, d, nil, f.memory.used, &f.open}
}

// Memory is the place in memory.
func (f *Files) Memory() Store { return f.memory }

// Stores are the places in which the job has maps: memory first.
func (f *Files) Stores() []Store { return f.all() }

// Close closes what is open. Nothing is kept from then on.
func (f *Files) Close() error {
	f.open.End()
	f.Tails.end()
	if f.disk == nil {
		return nil
	}
	return f.disk.root.Close()
}

// Room says why so much of a map could not be kept now, if so. It counts nothing: what comes
// does where it is written.
func (f *Files) Room(lasting bool, bytes int64) error {
	switch {
	case lasting && f.disk == nil:
		return errNone
	case f.disk != nil && f.disk.disk.Free() >= disk.Blocks(bytes):
		return nil
	case lasting:
		return f.disk.disk.Full()
	case f.memory.ram.Free() < bytes:
		return memory.ErrNoRoom
	}
	return nil
}

// errNone is for what has to last where nothing does.
var errNone = meta.Worded(meta.ErrNoSpace, "the stage has ack=durable, and this node has no disk for its job: mount with --pool-nvme DIR:SIZE, or, if the log says that the disk had failed when the job was made, make the job anew")

// Take keeps a map of which r has the bytes: on the disk if there is one. What has to last
// is nowhere else.
func (f *Files) Take(ctx context.Context, lasting bool, name string, t pieces.Table, r io.Reader) error {
	switch {
	case f.disk != nil:
		if err := f.disk.put(ctx, name, t, r, lasting); !errors.Is(err, disk.ErrFull) || lasting {
			return err
		}
	case lasting:
		return errNone
	}
	return f.memory.put(ctx, name, t, r, false)
}

// MoveToDisk has a map on the disk instead of in memory. It lasts there, so that the memory of
// its pages is free, too.
func (f *Files) MoveToDisk(ctx context.Context, stage uint64, c state.Commit) error {
	name := Path(stage, c)
	err := f.checked(stage, c, func(m *openmaps.Map, t pieces.Table) error {
		return f.disk.put(ctx, name, t, io.NewSectionReader(m, 0, c.Size+1), true)
	})
	if err != nil {
		return err
	}
	f.memory.remove(name)
	f.memory.remove(name + Idx)
	f.open.Forget(name) // which would keep the memory
	return nil
}

// Name gives a file in memory the name of a map, beside a table, behind which stand the n bytes of the
// map that come after the file.
func (f *Files) Name(name string, file *os.File, t pieces.Table, rest io.Reader, n int64) error {
	in := f.memory
	if err := in.placeTable(name+Idx, int64(len(t))+n, io.MultiReader(bytes.NewReader(t), rest)); errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("table of its map: %w", memory.ErrNoRoom)
	} else if err != nil {
		return err
	}
	if err := in.link(file, name); err != nil {
		return errors.Join(err, in.Remove(name+Idx))
	}
	return nil
}

// Drop removes the files of a map.
func (f *Files) Drop(name string) {
	for _, s := range f.all() {
		s.remove(name)
		s.remove(name + Idx)
	}
	f.forget(name)
}
