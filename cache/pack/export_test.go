package pack

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Resident is how much of what the store has mapped the system has pages for.
func (s *Store[K]) Resident() (bytes int64, err error) {
	s.arena.mu.Lock()
	defer s.arena.mu.Unlock()
	page := os.Getpagesize()
	for _, g := range s.arena.mu.segments {
		there := make([]byte, len(g.mem)/page)
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&g.mem[0])), uintptr(len(g.mem)), uintptr(unsafe.Pointer(&there[0])))
		if errno != 0 {
			return 0, fmt.Errorf("mincore: %w", errno)
		}
		for _, is := range there {
			bytes += int64(is&1) * int64(page)
		}
	}
	return bytes, nil
}
