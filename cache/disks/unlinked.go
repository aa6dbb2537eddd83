package disks

import (
	"os"
	"sync"

	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
)

// unlinked are the files that have no name any more but are still mapped by ranks:
// they die. What they take is in the budget until they are closed.
//
// Its lock is held for its own fields only, and no other is taken meanwhile.
type unlinked struct {
	budget *diskdir.Budget
	health *health

	mu struct {
		sync.Mutex
		dying   []dying
		looking int64 // bytes of dying files, as far as is known: sweep is finding out
	}
}

// A dying file is one of them.
type dying struct {
	file *os.File
	real int64
}

// add gives back a file that has no name.
func (n *unlinked) add(f *os.File, real int64) {
	_ = n.health.finish(func(w *slowdisk.Work) error {
		return w.Do(func() error {
			n.free(f, real)
			return nil
		})
	})
}

// free closes a file without a name, which frees its blocks, unless a rank still
// maps it: then the file is dying.
func (n *unlinked) free(f *os.File, real int64) {
	if !Unmapped(int(f.Fd())) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.mu.dying = append(n.mu.dying, dying{f, real})
		return
	}
	f.Close()
	n.budget.Add(-real)
}

// sweep closes the dying files that no rank maps any more and reports whether there
// were any.
func (n *unlinked) sweep() bool {
	all, looking := n.take()
	var still, free []dying
	for _, y := range all {
		if Unmapped(int(y.file.Fd())) {
			free = append(free, y)
		} else {
			still = append(still, y)
		}
	}
	n.mu.Lock()
	n.mu.dying = append(n.mu.dying, still...)
	n.mu.looking -= looking
	n.mu.Unlock()
	for _, y := range free {
		n.add(y.file, y.real)
	}
	return len(free) > 0
}

// take takes the dying files out, whose bytes are being looked at.
func (n *unlinked) take() (all []dying, looking int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all, n.mu.dying = n.mu.dying, nil
	for _, y := range all {
		looking += y.real
	}
	n.mu.looking += looking
	return all, looking
}

// bytes is the room of the dying files.
func (n *unlinked) bytes() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	bytes := n.mu.looking
	for _, y := range n.mu.dying {
		bytes += y.real
	}
	return bytes
}

func (n *unlinked) close() {
	all, _ := n.take()
	for _, y := range all {
		y.file.Close()
	}
}
