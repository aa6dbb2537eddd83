package pack

import (
	"context"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Resident is how much of what the store has mapped the system has pages for.
func (s *Store) Resident() (bytes int64, err error) {
	s.arena.mu.Lock()
	defer s.arena.mu.Unlock()
	page := os.Getpagesize()
	for _, g := range s.arena.mu.segments {
		if g == nil {
			continue
		}
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

// Keyed is a store whose slabs have keys, as their holders have names for them.
type Keyed[K comparable] struct {
	*Store
	mu   sync.Mutex
	ids  map[K]uint32
	cost map[uint32]int64
}

func NewKeyed[K comparable](c Config) (*Keyed[K], error) {
	s, err := New(c)
	return &Keyed[K]{Store: s, ids: make(map[K]uint32), cost: make(map[uint32]int64)}, err
}

func nameOf[K comparable](key K) (n Name) {
	copy(n[:], fmt.Sprint(key))
	return n
}

func (s *Keyed[K]) id(key K) (id uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok = s.ids[key]
	return id, ok
}

// Put leaves a slab that is there as it is.
func (s *Keyed[K]) Put(ctx context.Context, key K, plain []byte, c Codec) error {
	if _, ok := s.id(key); ok {
		return nil
	}
	id, real, err := s.Store.Put(ctx, nameOf(key), plain, c)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.ids[key]; ok { // by another meanwhile
		s.Store.Drop(id)
	} else {
		s.ids[key], s.cost[id] = id, real
	}
	return nil
}

// Get may find that its number is another slab's by now.
func (s *Keyed[K]) Get(key K, dst []byte) error {
	id, ok := s.id(key)
	if !ok {
		id = uint32(none)
	}
	return s.Store.Get(id, nameOf(key), dst)
}

// Has is what a slab costs, and whether it can be read.
func (s *Keyed[K]) Has(key K) (real int64, ok bool) {
	id, ok := s.id(key)
	if _, is := s.arena.kept(number(id)); !ok || is != sound {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cost[id], true
}

func (s *Keyed[K]) Drop(key K) bool {
	s.mu.Lock()
	id, ok := s.ids[key]
	delete(s.ids, key)
	s.mu.Unlock()
	return ok && s.Store.Drop(id)
}
