package pack_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"rankfs/cache/pack"
	"rankfs/meta"
)

// plainOf is what the slab of a key holds: numbers that say which it is, some
// of them noise.
func plainOf(key, n int) []byte {
	r := rand.New(rand.NewPCG(uint64(key), 9))
	b := make([]byte, 0, n+8)
	for len(b) < n {
		v := uint64(key)<<32 | uint64(len(b)/8)
		if key%3 == 0 && len(b)>>14&1 == 1 {
			v = r.Uint64()
		}
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b[:n]
}

func newStore(t testing.TB, c pack.Config) *pack.Keyed[int] {
	t.Helper()
	s, err := pack.NewKeyed[int](c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t testing.TB, s *pack.Keyed[int]) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if n := s.Stats(); n.Used != 0 || n.Plain != 0 || n.Slabs != 0 || n.Dying != 0 {
		t.Errorf("after close: %+v, want every gauge zero", n)
	}
}

var fast = pack.Codec{Algorithm: pack.S2}

func codecOf(key int) pack.Codec {
	all := pack.Codecs()
	return all[key%len(all)]
}

// Slabs of all lengths around a page, a block and a frame come back.
func TestSizes(t *testing.T) {
	s := newStore(t, pack.Config{Bytes: 64 << 20, BlockBytes: 64 << 10, Workers: 3})
	for i, n := range []int{20479, 20480, 20481, 64<<10 - 1, 64 << 10, 64<<10 + 1, 700_005} {
		for key := i * 100; key < i*100+16; key++ {
			if err := s.Put(context.Background(), key, plainOf(key, n), codecOf(key)); err != nil {
				t.Fatal(err)
			}
			plain := plainOf(key, n)
			dst := make([]byte, n)
			if err := s.Get(key, dst); err != nil || !bytes.Equal(dst, plain) {
				t.Errorf("get %d of %d bytes: %v", key, n, err)
			}
			if err := s.Get(key, make([]byte, n+1)); !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("get %d bytes into %d: %v", n, n+1, err)
			}
			if !s.Drop(key) || s.Drop(key) {
				t.Errorf("drop of key %d", key)
			}
			if err := s.Get(key, make([]byte, n)); !errors.Is(err, meta.ErrNotExist) {
				t.Errorf("get of what was dropped: %v", err)
			}
		}
	}
	if n := s.Stats(); n.Used != 0 || n.Slabs != 0 {
		t.Errorf("all dropped: %+v", n)
	}
}

// A model: whatever is put, dropped and read, the store has what it should,
// within its budget, and its gauges are sums over that.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := pack.NewKeyed[int](pack.Config{Bytes: 1 << 20, BlockBytes: 16 << 10, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		have := map[int]int{}
		limit, most := int64(1<<20), int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key, n := rapid.IntRange(0, 30).Draw(t, "key"), rapid.IntRange(0, 400<<10).Draw(t, "length")
				before := s.Stats().Used
				err := s.Put(context.Background(), key, plainOf(key, n), codecOf(key))
				_, had := have[key]
				if !had && err == nil {
					have[key] = n
				}
				if errors.Is(err, meta.ErrNoSpace) && before+int64(n)+4096+32*31 <= limit {
					t.Errorf("no room for %d bytes beside %d", n, before)
				} else if errors.Is(err, pack.ErrNoGain) && n < 16<<10 {
					return // a few pages
				} else if err != nil && (had || !errors.Is(err, meta.ErrNoSpace)) {
					t.Errorf("put: %v", err)
				}
			},
			"drop": func(t *rapid.T) {
				key := rapid.IntRange(0, 30).Draw(t, "key")
				if _, had := have[key]; s.Drop(key) != had {
					t.Errorf("drop of %d", key)
				}
				delete(have, key)
			},
			"limit": func(t *rapid.T) {
				limit = rapid.Int64Range(0, 1<<20).Draw(t, "limit")
				s.Limit(limit)
			},
			"": func(t *rapid.T) {
				var plain, real int64
				for key, n := range have {
					plain += int64(n)
					got, ok := s.Has(key)
					if !ok || got%int64(os.Getpagesize()) != 0 {
						t.Errorf("key %d: %d bytes, %v", key, got, ok)
					}
					real += got
				}
				st := s.Stats()
				if st.Slabs != len(have) || st.Plain != plain || st.Used != real || st.Limit != limit || st.Dying != 0 {
					t.Errorf("%+v, want %d slabs of %d bytes in %d", st, len(have), plain, real)
				}
				if most = max(st.Used, most); most > 1<<20 {
					t.Errorf("%d bytes used", most)
				}
			},
			"get": func(t *rapid.T) {
				key := rapid.IntRange(0, 30).Draw(t, "key")
				n, had := have[key]
				dst := make([]byte, n)
				err := s.Get(key, dst)
				if had && (err != nil || !bytes.Equal(dst, plainOf(key, n))) || !had && !errors.Is(err, meta.ErrNotExist) {
					t.Errorf("get %d: %v", key, err)
				}
			},
		})
		if err := s.Close(); err != nil || s.Stats().Used != 0 {
			t.Errorf("close: %v, %+v", err, s.Stats())
		}
	})
}

// Gets beside drops and puts of the same keys, more than there are workers:
// right bytes or none, and every byte is given back.
func TestStress(t *testing.T) {
	const n, keys = 300_000, 12
	s := newStore(t, pack.Config{Bytes: 1 << 20, BlockBytes: 32 << 10, Workers: 2})
	want := make([][]byte, keys)
	for key := range want {
		want[key] = plainOf(key, n)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			dst := make([]byte, n)
			for range 150 {
				key := r.IntN(keys)
				switch r.IntN(4) {
				case 0:
					if err := s.Put(context.Background(), key, want[key], codecOf(key)); err != nil && !errors.Is(err, meta.ErrNoSpace) && !errors.Is(err, meta.ErrBusy) {
						t.Errorf("put: %v", err)
					}
				case 1:
					s.Drop(key)
				default:
					if err := s.Get(key, dst); err == nil && !bytes.Equal(dst, want[key]) {
						t.Error("wrong bytes")
					} else if err != nil && !errors.Is(err, meta.ErrNotExist) {
						t.Errorf("get: %v", err)
					}
				}
				if u := s.Stats().Used; u > 1<<20 {
					t.Errorf("%d bytes used", u)
				}
			}
		})
	}
	all.Wait()
	for key := range keys {
		s.Drop(key)
	}
	if st := s.Stats(); st.Used != 0 || st.Dying != 0 || st.Unpacked == 0 || st.Packed == 0 {
		t.Errorf("in the end %+v", st)
	}
}

// A store that closes lets the calls finish that are in it, and takes no more.
func TestClose(t *testing.T) {
	const n = 2 << 20
	s := newStore(t, pack.Config{Bytes: 64 << 20})
	for key := range 4 {
		if err := s.Put(context.Background(), key, plainOf(key, n), fast); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for key := range 4 {
		all.Go(func() {
			dst := make([]byte, n)
			if err := s.Get(key, dst); err == nil && !bytes.Equal(dst, plainOf(key, n)) {
				t.Error("wrong bytes")
			} else if err != nil && !errors.Is(err, meta.ErrNotExist) {
				t.Error(err)
			}
			if err := s.Put(context.Background(), 100+key, dst, fast); err != nil && !errors.Is(err, meta.ErrBusy) {
				t.Error(err)
			}
		})
	}
	closeStore(t, s)
	all.Wait()
	if err := s.Put(context.Background(), 1000, nil, fast); !errors.Is(err, meta.ErrBusy) {
		t.Errorf("put after close: %v", err)
	}
	if s.Drop(1) {
		t.Error("something was there to drop after close")
	}
}

// The process really has the memory that counts and no more, and loses it when it
// is given back.
func TestReal(t *testing.T) {
	const n = 32 << 20
	s := newStore(t, pack.Config{Bytes: 64 << 20})
	for key := range 2 {
		if err := s.Put(context.Background(), key, plainOf(key, n/(key+1)), fast); err != nil {
			t.Fatal(err)
		}
	}
	last := int64(n) * 3 / 2 * 7 / 8 // half of it is noise
	for key := range 2 {
		used := s.Stats().Used
		if real, err := s.Resident(); err != nil || real != used || used <= 0 || used >= last {
			t.Errorf("%d bytes count, %d are there: %v", used, real, err)
		}
		s.Drop(key)
		last = used
	}
	if real, err := s.Resident(); err != nil || real != 0 || s.Stats().Used != 0 {
		t.Errorf("%d bytes are left after the drop: %v", real, err)
	}
}

// A slab that hardly becomes smaller is refused, costs nothing, and is known by
// its first eighth.
func TestNoGain(t *testing.T) {
	half := append(plainNoise(1<<20), plainOf(1, 1<<20)...)
	for _, row := range []struct {
		name    string
		plain   []byte
		codec   pack.Codec
		refused bool
	}{
		{"nothing", nil, fast, true},
		{"a page", plainOf(1, 4096), fast, true},
		{"noise", plainNoise(2 << 20), pack.Codec{Algorithm: pack.ZstdDefault}, true},
		{"a codec that does nothing", plainOf(1, 2<<20), pack.Codec{}, true},
		{"noise first", half, fast, true},
		{"noise last", slices.Concat(half[1<<20:], half[:1<<20]), fast, false},
		{"numbers", plainOf(1, 2<<20), fast, false},
	} {
		// of what is refused no more than a fifth fits
		s := newStore(t, pack.Config{Bytes: int64(len(row.plain)/5 + 8192), BlockBytes: 64 << 10})
		if !row.refused {
			s.Limit(4 << 20)
		}
		err := s.Put(context.Background(), 1, row.plain, row.codec)
		_, ok := s.Has(1)
		if st := s.Stats(); errors.Is(err, pack.ErrNoGain) != row.refused || ok == row.refused || (st.Used == 0) != row.refused || (st.Refused == 1) != row.refused {
			t.Errorf("%s: %v, there: %v, %+v", row.name, err, ok, st)
		}
	}
}

// ending is a context that ends when it has been asked so many times.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// A Put ends with its context, between two blocks, and leaves nothing.
func TestPutEnds(t *testing.T) {
	s := newStore(t, pack.Config{Bytes: 64 << 20})
	for blocks := range 3 {
		if err := s.Put(&ending{t.Context(), blocks}, 1, plainOf(1, 1<<20), fast); !errors.Is(err, context.Canceled) {
			t.Errorf("put: %v", err)
		}
		if st := s.Stats(); st.Used != 0 || st.Slabs != 0 || st.Packed != 0 {
			t.Errorf("%+v", st)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []pack.Config{{Bytes: -1}, {Workers: -1}, {BlockBytes: 1}, {BlockBytes: 8 << 20}} {
		if s, err := pack.NewKeyed[int](c); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%+v: %v, %v", c, s, err)
		}
	}
}
