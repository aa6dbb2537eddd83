package disks

import (
	"context"
	"os"

	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
)

// An unfinished file is to be a slab, or the index. What it takes is in the budget.
type unfinished struct {
	File
	place   *place
	evictor *evictor
	spare   spare // what may go for it
}

// withRoom reserves room for a file of that size, and has work done that begins it. If the disk has
// fallen silent meanwhile nothing is begun, and the room is given back.
func withRoom[T any](v *evictor, p *place, size int64, may spare, work func(*slowdisk.Work) (T, error), undo func(T)) (says T, err error) {
	need := p.blocks(size)
	if err := v.reserve(p, need, may); err != nil {
		return says, err
	}
	says, err = slowdisk.Run(context.Background(), &v.health.Disk, v.health.patience, work, undo)
	if err == slowdisk.ErrRefused {
		v.unreserve(p, need)
	}
	return says, v.health.refusal(v.health.answer(err))
}

// begin makes a file with the blocks for a slab, which have been reserved.
func (v *evictor) begin(w *slowdisk.Work, p *place, size int64, may spare) (*unfinished, error) {
	need := p.blocks(size)
	u := &unfinished{File{v.health, &diskdir.File{Dir: p.Root, Unfinished: p.temporary(), Room: v.budget, Takes: need}}, p, v, may}
	err := u.file.Create(w, os.O_EXCL, 0600, size)
	p.pending.Add(-need) // from here on the file system counts them
	if err == nil {
		err = w.Do(u.weigh)
	}
	if err != nil {
		u.drop(w)
		return nil, refused(err)
	}
	return u, nil
}

// weigh counts what the file really takes.
func (u *unfinished) weigh() error {
	info, err := u.file.Bytes.Stat()
	if err != nil {
		return err
	}
	u.file.Count(realOf(info))
	return u.evictor.trim(u.spare)
}

// seal gives the file its name.
func (u *unfinished) seal(w *slowdisk.Work, name string) error {
	u.file.Name = name
	return diskdir.Seal(w, u.file)
}

// drop removes the file.
func (u *unfinished) drop(w *slowdisk.Work) {
	if err := u.file.Discard(w); err != nil {
		u.health.Log.Debug("unfinished nvme slab not removed", "dir", u.health.Dir, "cause", err)
	}
}
