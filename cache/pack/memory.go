package pack

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// mapBytes returns anonymous memory of size bytes, whole pages. It costs
// nothing until it is touched, and then 4 KiB for 4 KiB: a huge page would hold
// more than it counts.
func mapBytes(size int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w: %w", size, err, meta.ErrNoSpace)
	}
	if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil && err != unix.EINVAL { // a kernel without them
		return nil, errors.Join(fmt.Errorf("map %d bytes: %w", size, err), unix.Munmap(mem))
	}
	return mem, nil
}

func unmapBytes(mem []byte) error { return unix.Munmap(mem) }

// populate brings the pages of mem, all at once and with an error if there are
// none.
func populate(mem []byte) error {
	if len(mem) == 0 {
		return nil
	}
	if err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE); err != nil {
		return fmt.Errorf("populate %d bytes: %w: %w", len(mem), err, meta.ErrNoSpace)
	}
	return nil
}

// giveBack returns the pages of mem to the system. The addresses stay.
func giveBack(mem []byte) error {
	if len(mem) == 0 {
		return nil
	}
	return unix.Madvise(mem, unix.MADV_DONTNEED)
}

// pages rounds up to whole pages.
func pages(n int) int {
	page := os.Getpagesize()
	return (n + page - 1) / page * page
}
