package pack

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"rankfs/meta"
)

// Config is the resources that a store may use.
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
		return c, fmt.Errorf("packed tier of %d bytes, %d workers %w: use zero or more", c.Bytes, c.Workers, meta.ErrInvalid)
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
		return n, fmt.Errorf("size of packed blocks, %d bytes, %w: use %d to %d", n, meta.ErrInvalid, minBlock, maxBlock)
	}
	return n, nil
}

// A Store is the packed tier. All methods may be called concurrently.
//
// A slab has a number from the end of its Put on, which the caller gives back by
// Drop, once. Its memory is freed when the last Get of it has ended. Under mu no
// other lock is taken but the arena's, and no lock is held while bytes move.
type Store struct {
	config  Config
	arena   *arena
	presses chan *press // idle ones, each taken for one block at a time: waits are short
	users   sync.WaitGroup

	mu struct {
		sync.Mutex
		slabs   int
		held    map[number]*slab // those that are read
		closed  bool
		dying   int // slabs that were dropped and are still read
		plain   int64
		count   counters
		failure error // of giving memory back: told by Close
	}
}

type counters struct {
	packed, refused, unpacked, damaged uint64
}

// A slab is one that is read.
type slab struct {
	number number
	rope   *rope
	plain  int64
	left   bool
	users  int
}

// New makes a store with nothing in it.
func New(c Config) (*Store, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{config: c, arena: newArena(c.Bytes), presses: make(chan *press, c.Workers)}
	s.mu.held = make(map[number]*slab)
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
// lasts, and returns its number and what it costs, in real bytes. It returns an
// error that wraps ErrNoGain if that is not worth it, meta.ErrNoSpace if the budget
// has no room, or meta.ErrBusy if the store is closed.
func (s *Store) Put(ctx context.Context, name Name, plain []byte, c Codec) (id uint32, real int64, err error) {
	if err := s.begin(); err != nil {
		return 0, 0, err
	}
	defer s.users.Done()
	r := new(rope)
	if err := s.pack(ctx, r, name, plain, c); err != nil {
		s.give(r, errors.Is(err, ErrNoGain))
		return 0, 0, fmt.Errorf("pack slab of %d bytes: %w", len(plain), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.count.packed++
	s.mu.plain += int64(len(plain))
	return uint32(s.arena.keep(r, int64(len(plain)))), r.real, nil
}

func (s *Store) pack(ctx context.Context, r *rope, name Name, plain []byte, c Codec) error {
	if c == (Codec{}) {
		return ErrNoGain
	}
	all := int64(len(plain))
	err := write(s.arena, r, s.presses, s.config.BlockBytes, name, plain, c, func(from, into int64) error {
		if hopeless(all, from, into) {
			return ErrNoGain
		}
		return s.wanted(ctx)
	})
	if err == nil && !worth(r.real, all) {
		return ErrNoGain
	}
	return err
}

// give ends a slab that was not packed.
func (s *Store) give(r *rope, refused bool) {
	err := s.arena.end(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.slabs--
	s.mu.failure = errors.Join(s.mu.failure, err)
	if refused {
		s.mu.count.refused++
	}
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

// wanted returns nil if a slab is still to be packed, or the reason why not.
func (s *Store) wanted(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return fmt.Errorf("%w: the store is closed", meta.ErrBusy)
	}
	return ctx.Err()
}

// begin counts one more slab and its user.
func (s *Store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return meta.Worded(meta.ErrBusy, "pack slab: the store is closed")
	}
	s.mu.slabs++
	s.users.Add(1)
	return nil
}

// hold returns a slab that is there, to be released, or nil.
func (s *Store) hold(n number) *slab {
	s.mu.Lock()
	defer s.mu.Unlock()
	plain, is := s.arena.kept(n)
	if is != sound || s.mu.closed {
		return nil
	}
	return s.use(n, plain)
}

// use counts one more user of a slab. mu is held.
func (s *Store) use(n number, plain int64) *slab {
	l := s.mu.held[n]
	if l == nil {
		l = &slab{number: n, rope: s.arena.rope(n), plain: plain}
		l.rope.trim()
		s.mu.held[n] = l
	}
	l.users++
	s.users.Add(1)
	return l
}

func (s *Store) release(l *slab) {
	defer s.users.Done()
	s.mu.Lock()
	l.users--
	last := l.users == 0
	if last && !l.left {
		delete(s.mu.held, l.number)
	}
	s.mu.Unlock()
	if !last || !l.left {
		return
	}
	err := s.arena.end(l.rope)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.dying--
	s.mu.failure = errors.Join(s.mu.failure, err)
}

// Drop gives a slab back, and reports whether there was one. A Get under way goes on,
// and the slab's memory counts until it ends.
func (s *Store) Drop(id uint32) bool {
	n := number(id)
	s.mu.Lock()
	plain, is := s.arena.kept(n)
	if is == body || s.mu.closed {
		s.mu.Unlock()
		return false
	}
	s.mu.plain -= plain
	s.mu.slabs--
	s.mu.dying++
	s.arena.mark(n, body)
	l := s.use(n, plain)
	l.left = true
	delete(s.mu.held, n)
	s.mu.Unlock()
	s.release(l)
	return true
}

// Limit sets the budget. What is over it is not dropped: the caller knows best
// what to drop, until Stats says that Used is no more than Limit.
func (s *Store) Limit(bytes int64) { s.arena.resize(bytes) }

// Close waits for calls that pack or read, and gives all memory back.
func (s *Store) Close() error {
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
		err = errors.Join(err, fmt.Errorf("close packed tier: %d bytes not given back", used))
	}
	return err
}

// clear frees all slabs, none of which is in use any more.
func (s *Store) clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.mu.failure
	for _, n := range s.arena.all() {
		err = errors.Join(err, s.arena.end(s.arena.rope(n)))
	}
	s.mu.slabs, s.mu.plain = 0, 0
	return err
}
