package fetch

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"unsafe"

	"rankfs/meta"
)

// A fault is what the runtime panics with when memory cannot be had: a page
// past the end of a file that was cut short, on a disk that fails, or of a
// tmpfs that is full.
type fault interface {
	runtime.Error
	Addr() uintptr
}

// guard calls f, which may touch mapped files, and turns a fault into an
// error: in dst, which f fills, there is no room; elsewhere the source has
// been cut short. Any other panic passes on, that of a nil pointer too. It
// guards the goroutine that calls it, not those that f begins.
func guard(dst []byte, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch v := recover().(type) {
		case nil:
		case fault:
			err = faultError(v, dst)
		default:
			panic(v)
		}
	}()
	err = f()
	if errors.Is(err, syscall.EFAULT) { // the kernel met the fault first
		return fmt.Errorf("fill: %w (%w)", meta.ErrNoSpace, err)
	}
	return err
}

func faultError(v fault, dst []byte) error {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(dst)))
	if at := v.Addr(); at >= start && at-start < uintptr(len(dst)) {
		return fmt.Errorf("fill: %w: no memory for byte %d of %d", meta.ErrNoSpace, at-start, len(dst))
	}
	return fmt.Errorf("%w: a file was cut short while it was read, or its disk failed; run 'rankfs dataset refresh'", meta.ErrStale)
}
