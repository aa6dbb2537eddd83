package pack

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"rankfs/meta"
)

// Config says what a store may use.
type Config struct {
	Bytes int64 // budget: real bytes of packed slabs, in whole pages
	// Workers bounds how many blocks are packed and unpacked at a time, and
	// with it the working memory, some 3 MiB for each, which does not count in
	// Bytes. One per core: nothing but the processor is waited for.
	Workers    int
	BlockBytes int // how much plain data is packed by itself
}

// defaultBlock: with blocks of 256 KiB zstd comes within 4 to 8 per cent of what
// it makes of 1 MiB, s2 unpacks faster than larger ones, and a slab of 1 MiB
// still keeps four cores busy.
const defaultBlock = 256 << 10

func (c Config) withDefaults() (Config, error) {
	if c.Workers == 0 {
		c.Workers = runtime.NumCPU()
	}
	if c.Bytes < 0 || c.Workers < 0 {
		return c, fmt.Errorf("packed level of %d bytes, %d workers: %w: use zero or more", c.Bytes, c.Workers, meta.ErrInvalid)
	}
	var err error
	c.BlockBytes, err = blockBytes(c.BlockBytes)
	return c, err
}

// blockBytes is the configured size of blocks, or the default for none.
func blockBytes(n int) (int, error) {
	if n == 0 {
		return defaultBlock, nil
	}
	if n < minBlock || n > maxBlock {
		return n, fmt.Errorf("packed blocks of %d bytes: %w: use %d to %d", n, meta.ErrInvalid, minBlock, maxBlock)
	}
	return n, nil
}

// A Store is the packed level: slabs by key, which names their content. All
// methods may be called concurrently.
//
// A slab is in slabs from the begin of its Put, and leaves by Drop, Close or
// damage. Its memory goes when it has left and nobody uses it. mu takes no
// other lock but the arena's, and none at all while bytes move.
type Store[K comparable] struct {
	config  Config
	arena   *arena
	presses chan *press // those that nobody works with, for one block at a time: waits are short
	users   sync.WaitGroup

	mu struct {
		sync.Mutex
		slabs   map[K]*slab
		closed  bool
		dying   int // slabs that left and are still used
		plain   int64
		count   counters
		failure error // of giving memory back: told by Close
	}
}

type counters struct {
	packed, refused, unpacked, plainIn, packedOut, damaged uint64
}

// A slab's rope is written by Put alone, and then read until users is zero.
type slab struct {
	rope  rope
	plain int64
	real  int64 // as the rope's, for those who do not use it
	ready bool
	left  bool
	users int
}

// New makes a store with nothing in it.
func New[K comparable](c Config) (*Store[K], error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store[K]{config: c, arena: newArena(c.Bytes), presses: make(chan *press, c.Workers)}
	s.mu.slabs = make(map[K]*slab)
	for range c.Workers {
		p, err := newPress(c.BlockBytes)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.presses <- p
	}
	return s, nil
}

// ErrNoGain says that a slab is not worth packing: it would take hardly less
// memory than it does as it is.
var ErrNoGain = errors.New("hardly becomes smaller")

// Put packs a slab by a codec, one block after the other, for as long as ctx
// lasts. It returns an error that wraps ErrNoGain if that is not worth it,
// meta.ErrNoSpace if the budget has no room, or meta.ErrBusy if another Put of
// the key is under way or the store is closed. A slab that is there already
// stays as it is; one that is dropped meanwhile is packed no further, which is
// no error.
func (s *Store[K]) Put(ctx context.Context, key K, plain []byte, c Codec) error {
	l, err := s.begin(key, int64(len(plain)))
	if l == nil || err != nil {
		return err
	}
	err = s.pack(ctx, l, plain, c)
	s.finish(key, l, err)
	if err != nil && err != errDropped {
		return fmt.Errorf("pack slab of %d bytes: %w", len(plain), err)
	}
	return nil
}

var errDropped = errors.New("dropped")

func (s *Store[K]) pack(ctx context.Context, l *slab, plain []byte, c Codec) error {
	if c == (Codec{}) {
		return ErrNoGain
	}
	err := write(s.arena, &l.rope, s.presses, s.config.BlockBytes, plain, c, func(from, into int64) error {
		if hopeless(l.plain, from, into) {
			return ErrNoGain
		}
		return s.wanted(ctx, l)
	})
	if err == nil && !worth(l.rope.real, l.plain) {
		return ErrNoGain
	}
	return err
}

// worth reports whether a packed slab saves an eighth of what it takes as it
// is, in whole pages: less is not worth unpacking it for each use.
func worth(real, plain int64) bool {
	whole := int64(pages(int(plain)))
	return whole-real >= whole/8 && whole > 0
}

// hopeless reports whether the begin of a slab, an eighth or more of it, became
// so little smaller that the rest will hardly make it worth while.
func hopeless(plain, from, into int64) bool {
	return from > 0 && from >= plain/8 && into > from-from/16
}

// wanted returns why nobody wants a slab packed any longer, or nil.
func (s *Store[K]) wanted(ctx context.Context, l *slab) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.left:
		return errDropped
	case s.mu.closed:
		return fmt.Errorf("%w: the store is closed", meta.ErrBusy)
	}
	return ctx.Err()
}

// begin enters a new slab, or returns nil if there is nothing to do.
func (s *Store[K]) begin(key K, plain int64) (*slab, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, fmt.Errorf("pack slab: %w: the store is closed", meta.ErrBusy)
	}
	if l := s.mu.slabs[key]; l != nil {
		if !l.ready {
			return nil, fmt.Errorf("pack slab: %w: it is being packed", meta.ErrBusy)
		}
		return nil, nil
	}
	l := &slab{plain: plain, users: 1}
	s.mu.slabs[key] = l
	s.users.Add(1)
	return l, nil
}

func (s *Store[K]) finish(key K, l *slab, err error) {
	s.mu.Lock()
	l.real = l.rope.real
	switch {
	case errors.Is(err, ErrNoGain):
		s.mu.count.refused++
		s.leave(key, l)
	case err != nil:
		s.leave(key, l)
	default:
		s.mu.count.packed++
		s.mu.count.plainIn += uint64(l.plain)
		s.mu.count.packedOut += uint64(l.rope.length)
	}
	if !l.left {
		l.ready = true
		s.mu.plain += l.plain
	}
	s.mu.Unlock()
	s.release(l)
}

// leave takes a slab out of the map. Whoever uses it last gives its memory
// back. mu is held.
func (s *Store[K]) leave(key K, l *slab) {
	if l.left {
		return
	}
	l.left = true
	s.mu.dying++
	delete(s.mu.slabs, key)
	if l.ready {
		s.mu.plain -= l.plain
	}
}

// hold returns a slab that is there, to be released, or nil.
func (s *Store[K]) hold(key K) *slab {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.mu.slabs[key]
	if l == nil || !l.ready || s.mu.closed {
		return nil
	}
	l.users++
	s.users.Add(1)
	return l
}

func (s *Store[K]) release(l *slab) {
	defer s.users.Done()
	s.mu.Lock()
	l.users--
	last := l.left && l.users == 0
	s.mu.Unlock()
	if !last {
		return
	}
	err := s.arena.end(&l.rope)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.dying--
	s.mu.failure = errors.Join(s.mu.failure, err)
}

// Has returns what a slab costs, in real bytes, and whether it is there.
func (s *Store[K]) Has(key K) (real int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.mu.slabs[key]
	if l == nil || !l.ready {
		return 0, false
	}
	return l.real, true
}

// Drop forgets a slab and reports whether there was one. Whoever is just
// reading it goes on; its memory counts until then. A slab that is being packed
// is dropped as soon as it is.
func (s *Store[K]) Drop(key K) bool {
	s.mu.Lock()
	l := s.mu.slabs[key]
	if l == nil || s.mu.closed {
		s.mu.Unlock()
		return false
	}
	l.users++
	s.users.Add(1)
	s.leave(key, l)
	s.mu.Unlock()
	s.release(l)
	return true
}

// Limit sets the budget. What is over it is not dropped: the caller knows best
// what to drop, until Stats says that Used is no more than Limit.
func (s *Store[K]) Limit(bytes int64) { s.arena.resize(bytes) }

// Close waits for who is packing or reading, and gives all memory back.
func (s *Store[K]) Close() error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return nil
	}
	s.mu.closed = true
	s.mu.Unlock()
	s.users.Wait()
	err := s.clear()
	for range len(s.presses) {
		err = errors.Join(err, (<-s.presses).close())
	}
	if used, _ := s.arena.usage(); used != 0 {
		err = errors.Join(err, fmt.Errorf("close packed level: %d bytes not given back", used))
	}
	return err
}

// clear ends all slabs, which nobody uses any more.
func (s *Store[K]) clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.mu.failure
	for _, l := range s.mu.slabs {
		err = errors.Join(err, s.arena.end(&l.rope))
	}
	clear(s.mu.slabs)
	s.mu.plain = 0
	return err
}
