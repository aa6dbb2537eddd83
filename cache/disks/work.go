package disks

import (
	"context"
	"errors"

	"rankfs/meta"
	"rankfs/meta/slowdisk"
)

// watch has work done on the disk. One that is silent suspends the directory.
func watch[T any](h *health, work func(*slowdisk.Work) (T, error), undo func(T)) (T, error) {
	v, err := slowdisk.Run(context.Background(), &h.Disk, h.patience, work, undo)
	return v, h.answer(err)
}

// do is watch for what returns nothing.
func (h *health) do(work func(*slowdisk.Work) error) error {
	_, err := watch(h, slowdisk.Plain(work), nil)
	return err
}

// call is do for work that is one system call, or a few that are quick.
func (h *health) call(f func() error) error {
	return h.do(func(w *slowdisk.Work) error { return w.Do(f) })
}

// finish has work done that ends what was begun: on a disk that is silent too.
func (h *health) finish(work func(*slowdisk.Work) error) error {
	return h.answer(h.Disk.Finish(h.patience, work))
}

// answer suspends the directory if its disk gave none.
func (h *health) answer(err error) error {
	if !errors.Is(err, slowdisk.ErrSilent) {
		return err
	}
	h.Fail(errStuck, true)
	return meta.Worded(ErrNoRoom, "nvme directory %s: %w", h.Dir, errStuck)
}
