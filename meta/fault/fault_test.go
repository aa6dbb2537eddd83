package fault_test

import (
	"errors"
	"os"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"rankfs/meta/fault"
)

// A page that is not there is an error, of the kernel's kind, that says where.
func TestGuard(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gone, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(gone)
	err = fault.Guard(func() error { gone[7] = 1; return nil })
	var e *fault.Error
	if !errors.As(err, &e) || e.Addr != uintptr(unsafe.Pointer(&gone[7])) || !errors.Is(err, syscall.EFAULT) {
		t.Errorf("got %v, want a fault at %p", err, &gone[7])
	}
	if debug.SetPanicOnFault(false) {
		t.Error("faults go on to panic")
	}
	boom := errors.New("boom")
	for _, want := range []error{nil, boom} {
		if err := fault.Guard(func() error { return want }); err != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

func TestOtherPanicsPass(t *testing.T) {
	var nothing *[4]byte
	for name, f := range map[string]func() error{
		"plain":       func() error { panic("boom") },
		"nil pointer": func() error { nothing[1] = 0; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			fault.Guard(f)
		})
	}
}
