// Package fault turns faults of mapped memory into errors.
package fault

import (
	"runtime"
	"runtime/debug"
	"syscall"
)

// An Error is a fault: a page past the end of a file that was cut short, on a
// disk that fails, or of a tmpfs that is full. It is an EFAULT, as which the
// kernel returns a fault that it meets first.
type Error struct{ Addr uintptr }

func (*Error) Error() string { return "a mapped page cannot be had" }
func (*Error) Unwrap() error { return syscall.EFAULT }

// Guard calls f, which may touch mapped memory, and returns a fault as an
// *Error. Any other panic passes on, that of a nil pointer too. It guards the
// goroutine that calls it, not those that f begins.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch v := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			err = &Error{v.Addr()}
		default:
			panic(v)
		}
	}()
	return f()
}
