package cache

import (
	"errors"
	"slices"

	"rankfs/meta"
)

// lacksFiles reports whether memory has room, and the daemon may not have another
// descriptor or mapping.
func lacksFiles(err error) bool { return meta.OutOfFiles(err) || errors.Is(err, errMappings) }

// crowded reports whether there are more files than are kept that are open nowhere.
func (r *ram) crowded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files() > r.idleFiles
}

// chargeOthers counts bytes of the budget that are taken by other things than slabs in files.
func (r *ram) chargeOthers(bytes int64) error {
	r.mu.Lock()
	discard, err := r.charge(bytes, 0)
	if err == nil {
		r.mu.takeOthers(bytes)
	}
	r.mu.Unlock()
	for _, d := range discard {
		d.close()
	}
	return err
}

func (r *ram) releaseOthers(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.freeOthers(bytes)
}

// store copies a batch into a slot.
func (r *ram) store(mem []byte) (slot uint32, err error) {
	size := int64(len(mem))
	r.mu.Lock()
	discard, err := r.charge(meta.WholePages(size), 0)
	if err == nil {
		r.mu.takeSlot()
	}
	r.mu.Unlock()
	for _, d := range discard {
		d.close()
	}
	if err != nil {
		return 0, err
	}
	if slot, err = r.slotFile.put(mem); err != nil {
		r.freed(size)
	}
	return slot, err
}

// unstore gives a slot back.
func (r *ram) unstore(slot uint32, size int64) {
	r.slotFile.give(slot, size)
	r.freed(size)
}

func (r *ram) freed(size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.freeSlot(meta.WholePages(size))
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

// TierStats counts the content of the RAM tier, in real bytes.
type TierStats struct {
	Budget int64
	Used   int64
	Dying  int64 // part of Used: given up, but still mapped by a rank
	Others int64 // part of Used: of what is not slabs
	Slabs  int
}

func (r *ram) stats() (t TierStats, recycled uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t = TierStats{Budget: r.budget.Load(), Used: r.mu.used, Others: r.mu.others, Slabs: r.mu.slabs()}
	for _, f := range slices.Concat(r.mu.dying, r.mu.looking) {
		t.Dying += f.real
	}
	return t, r.mu.recycled
}
