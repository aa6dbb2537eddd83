package pack_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rankfs/cache/pack"
	"rankfs/meta"
)

func newChooser(t *testing.T, c pack.ChooserConfig) *pack.Chooser {
	t.Helper()
	k, err := pack.NewChooser(c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// measured shows a slab to a chooser, and has it measured if that is due.
func measured(k *pack.Chooser, plain []byte) error {
	measure, err := k.Offer(plain)
	if measure == nil {
		return err
	}
	return measure()
}

// ticks is a clock on which everything takes a millisecond.
func ticks() func() time.Duration {
	var now time.Duration
	return func() time.Duration { now += time.Millisecond; return now }
}

// What is known of a codec decides: the wait of each row was worked out by hand
// for a dataset of 100 bytes.
func TestWait(t *testing.T) {
	ms := time.Millisecond
	for _, row := range []struct {
		name    string
		memory  int64
		measure pack.Measure
		want    time.Duration
	}{
		{"all of it is in memory as it is", 100, pack.Measure{Ratio: .5, Unpack: 1 * ms}, 0},
		{"all of it fits when 80 are packed", 60, pack.Measure{Ratio: .5, Unpack: 10 * ms}, 8 * ms},
		{"half does not fit even so", 25, pack.Measure{Ratio: .5, Unpack: 10 * ms}, 55 * ms},
		{"unpacking costs what it saves", 25, pack.Measure{Ratio: .5, Unpack: 50 * ms}, 75 * ms},
		{"packing it once costs too much", 25, pack.Measure{Ratio: .5, Unpack: 10 * ms, Pack: 100 * ms}, 75 * ms},
		{"nothing is saved", 25, pack.Measure{Ratio: 1, Unpack: 1 * ms}, 75 * ms},
		{"no memory", 0, pack.Measure{Ratio: .5, Unpack: 1 * ms}, 100 * ms},
	} {
		s := pack.Setting{Memory: row.memory, Dataset: 100, Below: 100 * ms}
		if got := s.Wait(row.measure); (got - row.want).Abs() > time.Microsecond {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// What is measured is what the slab was when it was shown: it may have gone by then.
func TestMeasuredAfterItsSlabHasGone(t *testing.T) {
	k := newChooser(t, pack.ChooserConfig{BlockBytes: 64 << 10})
	plain := plainNoise(1 << 20)
	measure, err := k.Offer(plain)
	if err != nil {
		t.Fatal(err)
	}
	clear(plain)
	if err := measure(); err != nil {
		t.Fatal(err)
	}
	for _, m := range k.Measures() {
		if m.Ratio < 0.9 {
			t.Errorf("%v: noise packed to %v", m.Codec, m.Ratio)
		}
	}
}

// No way to share memory out between packed and plain slabs waits less than
// Wait says.
func TestWaitIsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := pack.Setting{
			Dataset: rapid.Int64Range(1, 1000).Draw(t, "dataset"), Memory: rapid.Int64Range(0, 1000).Draw(t, "memory"),
			Below: time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "below")), Uses: rapid.Float64Range(0, 100).Draw(t, "uses"),
		}
		m := pack.Measure{
			Ratio:  rapid.Float64Range(0.01, 1).Draw(t, "ratio"),
			Unpack: time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "unpack")), Pack: time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "pack")),
		}
		w, mem := float64(s.Dataset), float64(s.Memory)
		cost := float64(m.Unpack) + float64(m.Pack)/max(1, s.Uses)
		least := math.Inf(1)
		for i := range 1001 {
			b := min(w, mem/m.Ratio) * float64(i) / 1000
			a := min(w-b, mem-b*m.Ratio)
			least = min(least, (b*cost+(w-a-b)*float64(s.Below))/w)
		}
		got := float64(s.Wait(m))
		if got > least+1 || got < least-0.002*max(cost, float64(s.Below))-1 {
			t.Errorf("%v, least is %v", got, least)
		}
	})
}

// A dataset of each kind gets a codec that is right for it, and for what it
// would otherwise wait for.
func TestChoose(t *testing.T) {
	text := func(n int) []byte {
		var b []byte
		for i := 0; len(b) < n; i++ {
			b = fmt.Appendf(b, "rank %d reads batch %d of %d\n", i%7, i*i%1009, i)
		}
		return b[:n]
	}
	for _, row := range []struct {
		name   string
		plain  []byte
		s      pack.Setting
		packed bool
	}{
		{"text behind a slow network", text(1 << 20), pack.Setting{Memory: 1 << 30, Dataset: 4 << 30, Below: 50 * time.Millisecond, Uses: 10}, true},
		{"text that fits", text(1 << 20), pack.Setting{Memory: 4 << 30, Dataset: 4 << 30, Below: 50 * time.Millisecond, Uses: 10}, false},
		{"text on a disk as fast as memory", text(1 << 20), pack.Setting{Memory: 1 << 30, Dataset: 4 << 30, Below: 20 * time.Microsecond, Uses: 10}, false},
		{"noise behind a slow network", plainNoise(1 << 20), pack.Setting{Memory: 1 << 30, Dataset: 4 << 30, Below: 50 * time.Millisecond, Uses: 10}, false},
	} {
		k := newChooser(t, pack.ChooserConfig{BlockBytes: 64 << 10})
		if c := k.Choose(row.s); c != (pack.Codec{}) {
			t.Errorf("%s: %v before anything was seen", row.name, c)
		}
		if err := measured(k, row.plain); err != nil {
			t.Fatal(err)
		}
		if c := k.Choose(row.s); (c != pack.Codec{}) != row.packed {
			t.Errorf("%s: %v of %+v", row.name, c, k.Measures())
		}
	}
}

func plainNoise(n int) []byte {
	b := make([]byte, n)
	for i, v := 0, uint64(1); i < n; i++ {
		v ^= v << 13
		v ^= v >> 7
		v ^= v << 17
		b[i] = byte(v)
	}
	return b
}

// Numbers are packed with their bytes sorted, since that is smaller.
func TestChooseShuffled(t *testing.T) {
	var plain []byte
	for i, v := 0, uint32(7); i < 1<<16; i++ {
		v = v*1664525 + 1013904223
		plain = append(plain, byte(v>>8), byte(v>>16), 0x80, 0x3f)
	}
	k := newChooser(t, pack.ChooserConfig{BlockBytes: 64 << 10, Clock: ticks()})
	if err := measured(k, plain); err != nil {
		t.Fatal(err)
	}
	s := pack.Setting{Memory: 1 << 20, Dataset: 1 << 30, Below: time.Hour}
	if c := k.Choose(s); c.Width == 0 {
		t.Errorf("chose %v of %+v", c, k.Measures())
	}
}

// The same slabs and the same clock lead to the same choice; the first slabs
// are measured and then one in so many.
func TestChooserIsDeterministic(t *testing.T) {
	calls := 0
	measure := func() []pack.Measure {
		tick := ticks()
		k := newChooser(t, pack.ChooserConfig{Every: 10, BlockBytes: 16 << 10, Clock: func() time.Duration { calls++; return tick() }})
		var when []int
		for i := range 41 {
			before := calls
			if err := measured(k, plainOf(i, 300_000)); err != nil {
				t.Fatal(err)
			}
			if calls > before {
				when = append(when, i)
			}
		}
		if got := fmt.Sprint(when); got != "[0 1 2 10 20 30 40]" {
			t.Errorf("measured %s", got)
		}
		return k.Measures()
	}
	if a, b := measure(), measure(); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("first %v, then %v", a, b)
	}
}

// A choice stays while another is hardly better, goes when it no longer pays,
// and follows a dataset that becomes another.
func TestChoiceStays(t *testing.T) {
	fast := pack.Codec{Algorithm: pack.S2}
	small := pack.Codec{Algorithm: pack.ZstdDefault}
	var step time.Duration
	var now time.Duration
	k := newChooser(t, pack.ChooserConfig{Codecs: []pack.Codec{fast, small}, Every: 1,
		Clock: func() time.Duration { now += step; return now }})
	s := pack.Setting{Memory: 1 << 20, Dataset: 1 << 30, Below: time.Second}
	step = time.Microsecond
	offer := func(plain []byte) {
		t.Helper()
		if err := measured(k, plain); err != nil {
			t.Fatal(err)
		}
	}
	offer(plainOf(1, 1<<20))
	first := k.Choose(s)
	if first == (pack.Codec{}) {
		t.Fatalf("nothing chosen of %+v", k.Measures())
	}
	fits := s
	fits.Memory = fits.Dataset
	if c := k.Choose(fits); c != (pack.Codec{}) {
		t.Errorf("%v although all fits", c)
	}
	if c := k.Choose(s); c != first {
		t.Errorf("%v, before it was %v", c, first)
	}
	for range 40 {
		offer(plainNoise(1 << 20))
	}
	if c := k.Choose(s); c != (pack.Codec{}) {
		t.Errorf("%v for noise: %+v", c, k.Measures())
	}
}

func TestChooserConfig(t *testing.T) {
	for _, c := range []pack.ChooserConfig{
		{Codecs: []pack.Codec{{Algorithm: 99}}}, {Codecs: []pack.Codec{{Algorithm: pack.S2, Width: 3}}}, {BlockBytes: 1},
	} {
		if _, err := pack.NewChooser(c); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
