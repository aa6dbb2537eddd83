package disks

import (
	"os"

	"rankfs/meta/slowdisk"
)

// An unfinished file is to be a slab, or the index. What it takes is in the budget.
type unfinished struct {
	*File
	evictor *evictor
	real    int64
	spare   spare // what may go for it
}

// begin makes a file with the blocks for a slab, which have been reserved.
func (v *evictor) begin(p *place, size int64, may spare) (*unfinished, error) {
	u := &unfinished{evictor: v, real: p.blocks(size), spare: may}
	f, err := p.create(v.health, p.temporary(), os.O_EXCL, size, false)
	p.pending.Add(-u.real) // from here on the file system counts them
	if f == nil {
		v.budget.Add(-u.real)
		return nil, refused(err)
	}
	u.File = f
	if err == nil {
		err = u.weigh()
	}
	if err != nil {
		u.drop()
		return nil, refused(err)
	}
	return u, nil
}

// weigh counts what the file really takes.
func (u *unfinished) weigh() error {
	info, err := u.file.Stat()
	if err != nil {
		return err
	}
	real := realOf(info)
	u.evictor.budget.Add(real - u.real)
	u.real = real
	return u.evictor.trim(u.spare)
}

// dropBy is drop by work that may be left behind.
func (u *unfinished) dropBy(w *slowdisk.Work) {
	_ = w.Undo(func() error {
		u.drop()
		return nil
	})
}

// drop removes the file.
func (u *unfinished) drop() {
	if err := u.discard(); err != nil {
		u.health.Log.Debug("unfinished nvme slab not removed", "dir", u.health.Dir, "cause", err)
	}
	u.evictor.budget.Add(-u.real)
}
