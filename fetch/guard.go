package fetch

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"rankfs/meta"
	"rankfs/meta/fault"
)

// guard calls f, which may touch mapped files, and says of a fault what it
// means: in dst, which f fills, there is no room; elsewhere the source has been
// cut short, or its disk failed.
func guard(dst []byte, f func() error) error {
	err := fault.Guard(f)
	if v, ok := err.(*fault.Error); ok {
		return faultError(v.Addr, dst)
	}
	if errors.Is(err, syscall.EFAULT) { // the kernel met the fault first
		return fmt.Errorf("fill: %w (%w)", meta.ErrNoSpace, err)
	}
	return err
}

func faultError(at uintptr, dst []byte) error {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(dst)))
	if at >= start && at-start < uintptr(len(dst)) {
		return fmt.Errorf("fill: %w: no memory for byte %d of %d", meta.ErrNoSpace, at-start, len(dst))
	}
	return fmt.Errorf("%w: a file was cut short while it was read, or its disk failed", meta.ErrStale)
}
