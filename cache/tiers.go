package cache

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"rankfs/cache/disks"
	"rankfs/meta"
)

// tiers are the places where bytes are. They know nothing of the cache, nor its lock.
type tiers struct {
	config *Config
	ram    *ram
	packed *packed
	nvme   *disks.Tier // nil if there is none
}

// newTiers opens the tiers in memory.
func newTiers(config *Config) (*tiers, error) {
	ram, err := newRAM(config.RAMBytes)
	if err != nil {
		return nil, err
	}
	packed, err := newPacked(ram)
	if err != nil {
		return nil, errors.Join(err, ram.close())
	}
	return &tiers{config: config, ram: ram, packed: packed}, nil
}

func newRAM(budget int64) (*ram, error) {
	// within_size: huge pages where a file fills them, none past its end,
	// so that real bytes are the size rounded up to a page.
	dir, err := mountTmpfs(budget, "within_size")
	if err != nil {
		return nil, err
	}
	p, err := newSlotFile(budget)
	if err != nil {
		dir.Close()
		return nil, err
	}
	root, err := os.Open(fmt.Sprintf("/proc/self/fd/%d/.", dir.Fd()))
	if err != nil {
		return nil, errors.Join(err, dir.Close(), p.close())
	}
	maxFiles := maxMappings() / 4 * 3
	r := &ram{dir: dir, root: root, slotFile: p, maxFiles: maxFiles, idleFiles: min(maxIdleFiles, maxFiles/2, disks.MaxFiles()/2)}
	r.budget.Store(budget)
	r.handles = r.canReopen()
	return r, nil
}

// maxIdleFiles is how many files are kept at hand: they cost the kernel 30 MB.
const maxIdleFiles = 1 << 14

// maxMappings is the number of mappings that the kernel lets a process have.
func maxMappings() int {
	const usual = 65530
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return usual
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return usual
	}
	return n
}

func (t *tiers) close() error {
	err := errors.Join(t.packed.close(), t.ram.close())
	if t.nvme != nil {
		err = errors.Join(err, t.nvme.Close())
	}
	return err
}

// exceedsMemory reports whether memory could not hold so much if it were empty.
func (t *tiers) exceedsMemory(size int64) bool { return meta.WholePages(size) > t.config.RAMBytes }

// register makes the slab known to the kernel, or gives it back.
func (t *tiers) register(e *entry) (err error) {
	if t.config.Backing == nil {
		return nil
	}
	if e.backing, err = t.config.Backing.Register(e.fd()); err != nil {
		t.giveBack(e)
		return fmt.Errorf("register slab with the kernel: %w", err)
	}
	return nil
}

// discard gives a slab back, and has the kernel forget it.
func (t *tiers) discard(e *entry) {
	if t.config.Backing != nil && !e.inSlot {
		t.config.Backing.Unregister(e.backing)
	}
	t.giveBack(e)
}

// giveBack gives the bytes of a slab back to their tier.
func (t *tiers) giveBack(e *entry) {
	switch {
	case e.ram != nil:
		t.ram.retire(e.ram)
	case e.inSlot:
		t.ram.unstore(e.number, e.size)
		e.inSlot = false
	case e.file != nil:
		e.file.Release()
	}
	e.ram, e.file = nil, nil
}
