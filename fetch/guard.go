package fetch

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"rankfs/meta"
	"rankfs/meta/fault"
)

// guard calls f, which may touch mapped files, and turns a memory fault into an
// error. A fault in dst, which f fills, means that there is no room; a fault
// elsewhere means that the source was truncated or its disk failed.
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
