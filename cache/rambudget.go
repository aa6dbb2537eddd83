package cache

import (
	"errors"
	"fmt"
	"slices"

	"rankfs/cache/disks"
)

// charge counts bytes as used, for so many more files, those of spare files that must
// go taken off. r.mu is held; the files are to be closed without it.
func (r *ram) charge(need int64, files int) (discard []*ramFile, err error) {
	fits := func() bool {
		return r.mu.used+need <= r.budget.Load() && (files == 0 || r.files()+files <= r.most)
	}
	for !fits() && len(r.mu.spare) > 0 {
		discard = append(discard, r.oldest())
	}
	switch {
	case fits():
		r.mu.used += need
		return discard, nil
	case r.mu.used+need <= r.budget.Load():
		return discard, errMappings
	}
	return discard, errNoRoom
}

// errMappings is errNoRoom for the lack of nothing but mappings.
var errMappings = fmt.Errorf("%w: as many mappings as vm.max_map_count allows a process", errNoRoom)

// lacksFiles reports whether memory has room, and the daemon may not have another
// descriptor or mapping.
func lacksFiles(err error) bool { return disks.OutOfFiles(err) || errors.Is(err, errMappings) }

// files is how many have a descriptor and a mapping. r.mu is held.
func (r *ram) files() int {
	return r.mu.held - r.mu.closed + len(r.mu.spare) + len(r.mu.dying) + len(r.mu.looking)
}

// crowded reports whether there are more files than are kept that are open nowhere.
func (r *ram) crowded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files() > r.idleFiles
}

// oldest takes the first of the spare files. r.mu is held.
func (r *ram) oldest() *ramFile {
	f := r.mu.spare[0]
	r.mu.spare = r.mu.spare[1:]
	r.mu.used -= f.real
	return f
}

// closeSpare closes a spare file, if there is one, not for its memory but because
// another file may lack its descriptor or its mapping.
func (r *ram) closeSpare() bool {
	r.mu.Lock()
	if len(r.mu.spare) == 0 {
		r.mu.Unlock()
		return false
	}
	f := r.oldest()
	r.mu.Unlock()
	f.close()
	return true
}

// claim counts bytes of the budget that are taken by other things than slabs in files.
func (r *ram) claim(bytes int64) error {
	r.mu.Lock()
	discard, err := r.charge(bytes, 0)
	if err == nil {
		r.mu.claims += bytes
	}
	r.mu.Unlock()
	for _, d := range discard {
		d.close()
	}
	return err
}

func (r *ram) unclaim(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.used -= bytes
	r.mu.claims -= bytes
}

// free is the memory that nothing has.
func (r *ram) free() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := r.budget.Load() - r.mu.used
	for _, f := range r.mu.spare {
		free += f.real
	}
	return free
}

// fits gives spare files back until the use is within the budget, if that
// is enough.
func (r *ram) fits() bool {
	r.mu.Lock()
	discard, err := r.charge(0, 0)
	r.mu.Unlock()
	for _, d := range discard {
		d.close()
	}
	return err == nil
}

func (r *ram) stats() (t TierStats, recycled uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t = TierStats{Budget: r.budget.Load(), Used: r.mu.used, Others: r.mu.claims, Slabs: r.mu.held + r.mu.slots}
	for _, f := range slices.Concat(r.mu.dying, r.mu.looking) {
		t.Dying += f.real
	}
	for _, f := range r.mu.spare {
		t.Spare += f.real
	}
	return t, r.mu.recycled
}
