package meta_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rankfs/meta"
)

var defaults = meta.View{
	Dataset: "imagenet",
	Ranks:   4,
	Order:   meta.Order{Kind: meta.OrderFull},
	Step:    meta.BatchSize{Unit: meta.UnitRecords, N: 1024},
}

func TestWith(t *testing.T) {
	tests := []struct {
		options string
		want    string // the options of the view, spelled out
	}{
		{"epoch=3", "epoch=3,ranks=4,seed=0,order=full,step=1024,tail=keep,assign=local"},
		{"ranks=16", "epoch=0,ranks=16,seed=0,order=full,step=1024,tail=keep,assign=local"},
		{"batch=32,ranks=16", "epoch=0,ranks=16,seed=0,order=full,step=512,tail=keep,assign=local"},
		{"ranks=16,batch=32", "epoch=0,ranks=16,seed=0,order=full,step=512,tail=keep,assign=local"},
		{"batch=32", "epoch=0,ranks=4,seed=0,order=full,step=128,tail=keep,assign=local"},
		{"step=32", "epoch=0,ranks=4,seed=0,order=full,step=32,tail=keep,assign=local"},
		{"batch=16MiB", "epoch=0,ranks=4,seed=0,order=full,step=64MiB,tail=keep,assign=local"},
		{"batch=1000B", "epoch=0,ranks=4,seed=0,order=full,step=4000B,tail=keep,assign=local"},
		{"step=64M", "epoch=0,ranks=4,seed=0,order=full,step=64MiB,tail=keep,assign=local"},
		{"step=1MB", "epoch=0,ranks=4,seed=0,order=full,step=1000000B,tail=keep,assign=local"},
		{"batch=chunk", "epoch=0,ranks=4,seed=0,order=full,step=chunk,tail=keep,assign=local"},
		{"assign=strict", "epoch=0,ranks=4,seed=0,order=full,step=1024,tail=keep,assign=strict"},
		{"order=none,tail=pad", "epoch=0,ranks=4,seed=0,order=none,step=1024,tail=pad,assign=local"},
		{"order=window:50000,tail=drop", "epoch=0,ranks=4,seed=0,order=window:50000,step=1024,tail=drop,assign=local"},
		{"seed=18446744073709551615,epoch=18446744073709551615", "epoch=18446744073709551615,ranks=4,seed=18446744073709551615,order=full,step=1024,tail=keep,assign=local"},
		{"ranks=1048576,step=1TiB", "epoch=0,ranks=1048576,seed=0,order=full,step=1TiB,tail=keep,assign=local"},
	}
	for _, tt := range tests {
		t.Run(tt.options, func(t *testing.T) {
			v, err := defaults.With(tt.options)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := v.String(), "imagenet@"+tt.want; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestWithRefuses(t *testing.T) {
	long := strings.Repeat("9", 100_000)
	tests := []struct{ name, options string }{
		{"nothing", ""},
		{"a comma", ","},
		{"an at sign", "@"},
		{"a second view", "epoch=1@epoch=2"},
		{"no value", "epoch"},
		{"an empty value", "epoch="},
		{"no key", "=1"},
		{"a comma at the end", "epoch=1,"},
		{"a comma at the start", ",epoch=1"},
		{"two commas", "epoch=1,,ranks=2"},
		{"a key twice", "epoch=1,epoch=2"},
		{"a key twice alike", "epoch=1,seed=2,epoch=1"},
		{"an unknown key", "epochs=1"},
		{"an upper-case key", "Epoch=1"},
		{"a space before a key", "epoch=1, ranks=2"},
		{"a minus", "epoch=-1"},
		{"a plus", "epoch=+1"},
		{"a leading zero", "epoch=01"},
		{"two zeros", "epoch=00"},
		{"a space", "epoch= 1"},
		{"a space at the end", "epoch=1 "},
		{"a newline", "epoch=1\n"},
		{"hexadecimal", "epoch=0x1"},
		{"an underscore", "epoch=1_0"},
		{"a fraction", "epoch=1.0"},
		{"an exponent", "epoch=1e3"},
		{"two equal signs", "epoch=1=2"},
		{"Arabic digits", "epoch=\u0661"},
		{"2^64", "epoch=18446744073709551616"},
		{"a seed of 2^64", "seed=18446744073709551616"},
		{"a very long number", "epoch=" + long},
		{"a very long key", long + "=1"},
		{"very many options", strings.Repeat("epoch=1,", 10_000)},
		{"no ranks", "ranks=0"},
		{"too many ranks", "ranks=1048577"},
		{"2^64 ranks", "ranks=18446744073709551616"},
		{"no batch", "batch=0"},
		{"no step", "step=0"},
		{"no bytes", "batch=0MiB"},
		{"too big a batch", "batch=1099511627777"},
		{"too many bytes", "batch=2TiB"},
		{"bytes past 64 bits", "batch=16777217TiB"},
		{"too big a step of batches", "batch=1099511627776,ranks=1048576"},
		{"an unknown unit", "batch=1PiB"},
		{"a unit alone", "batch=MiB"},
		{"a space before a unit", "batch=1 MiB"},
		{"a negative size", "batch=-1MiB"},
		{"batch and step", "batch=1,step=4"},
		{"step and batch", "step=4,batch=1"},
		{"chunks by number", "batch=chunk:2"},
		{"an unknown order", "order=random"},
		{"an upper-case order", "order=Full"},
		{"a window of nothing", "order=window:"},
		{"a window without a colon", "order=window"},
		{"a window of 0", "order=window:0"},
		{"a window of 1", "order=window:1"},
		{"a window too big", "order=window:1099511627777"},
		{"a window in bytes", "order=window:1MiB"},
		{"an unknown tail", "tail=cut"},
		{"an empty tail", "tail="},
		{"an unknown assignment", "assign=remote"},
		{"an empty assignment", "assign="},
		{"NUL", "epoch=1\x00"},
		{"NUL in a key", "ep\x00och=1"},
		{"not UTF-8", "epoch=\xff\xfe"},
		{"a slash", "epoch=1/2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if v, err := defaults.With(tt.options); !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("got %v, error %v", v, err)
			}
		})
	}
}

// A number has one spelling, and one that has another is told it.
func TestLeadingZeros(t *testing.T) {
	for options, want := range map[string]string{
		"epoch=03":   `view option epoch "03" is not valid: write 3, without zeros before it`,
		"seed=00":    `view option seed "00" is not valid: write 0, without zeros before it`,
		"ranks=00":   `view option ranks "00" is not a number from 1 to `,
		"epoch=0x3":  `view option epoch "0x3" is not a number from 0 to `,
		"batch=0256": `view option batch "0256" `,
	} {
		_, err := meta.View{Dataset: "d", Ranks: 1}.With(options)
		if !errors.Is(err, meta.ErrInvalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", options, err, want)
		}
	}
}

// anyView draws views of which most are valid.
var anyView = rapid.Custom(func(t *rapid.T) meta.View {
	number := func(name string, high uint64) uint64 {
		return rapid.OneOf(rapid.Uint64Range(0, high), rapid.Uint64Range(0, 3)).Draw(t, name)
	}
	v := meta.View{
		Dataset: rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.-]{0,111}`).Draw(t, "dataset"),
		Epoch:   number("epoch", math.MaxUint64),
		Ranks:   number("ranks", meta.MaxRanks+1),
		Seed:    number("seed", math.MaxUint64),
		Order:   meta.Order{Kind: meta.OrderKind(number("order", 3))},
		Step:    meta.BatchSize{Unit: meta.BatchUnit(number("unit", 3))},
		Tail:    meta.Tail(number("tail", 3)),
		Assign:  meta.Assign(number("assign", 2)),
	}
	if v.Order.Kind == meta.OrderWindow || rapid.IntRange(0, 9).Draw(t, "odd window") == 0 {
		v.Order.Window = number("window", meta.MaxBatch+1)
	}
	if v.Step.Unit != meta.UnitChunk || rapid.IntRange(0, 9).Draw(t, "odd step") == 0 {
		v.Step.N = number("step", meta.MaxBatch+1)
	}
	return v
})

func TestAViewsNameOpensIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyView.Draw(t, "view")
		if v.Check() != nil {
			return // not a view
		}
		name := v.String()
		dataset, options, isView := meta.SplitView(name)
		if dataset != v.Dataset || !isView || meta.CheckName(dataset) != nil {
			t.Fatalf("%q splits into %q and %q", name, dataset, options)
		}
		if len(name) > 255 {
			t.Fatalf("%q is longer than NAME_MAX", name)
		}
		other := meta.View{Dataset: v.Dataset, Epoch: 5, Ranks: 6, Seed: 7, Step: meta.BatchSize{N: 8}}
		for _, from := range []meta.View{v, other} {
			if got, err := from.With(options); err != nil || got != v {
				t.Fatalf("With(%q) = %v, error %v", options, got, err)
			}
			_, options, isView := meta.SplitView(v.Short(from))
			if !isView && from == v {
				continue
			}
			if got, err := from.With(options); err != nil || got != v {
				t.Fatalf("%v: by its short name, With(%q) = %v, error %v", v, options, got, err)
			}
		}
	})
}

func TestTheLongestViewFitsAName(t *testing.T) {
	v := meta.View{
		Dataset: strings.Repeat("d", meta.MaxName),
		Epoch:   math.MaxUint64,
		Ranks:   meta.MaxRanks,
		Seed:    math.MaxUint64,
		Order:   meta.Order{Kind: meta.OrderWindow, Window: meta.MaxBatch},
		Step:    meta.BatchSize{Unit: meta.UnitBytes, N: meta.MaxBatch - 1},
		Assign:  meta.AssignStrict,
	}
	if err := v.Check(); err != nil {
		t.Fatal(err)
	}
	if n := len(v.String()); n > 255 {
		t.Errorf("%d characters, NAME_MAX is 255", n)
	}
}

func TestTheSequenceOfOptionsDoesNotMatter(t *testing.T) {
	options := strings.Split("epoch=3,ranks=7,seed=9,order=window:100,batch=5,tail=pad,assign=strict", ",")
	want, err := defaults.With(strings.Join(options, ","))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		r.Shuffle(len(options), func(i, j int) { options[i], options[j] = options[j], options[i] })
		if got, err := defaults.With(strings.Join(options, ",")); err != nil || got != want {
			t.Fatalf("With(%q) = %v, error %v, want %v", options, got, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name   string
		change func(v *meta.View)
		ok     bool
	}{
		{"as it is", func(v *meta.View) {}, true},
		{"whole chunks", func(v *meta.View) { v.Step = meta.BatchSize{Unit: meta.UnitChunk} }, true},
		{"the largest", func(v *meta.View) { v.Ranks, v.Step.N = meta.MaxRanks, meta.MaxBatch }, true},
		{"a window", func(v *meta.View) { v.Order = meta.Order{Kind: meta.OrderWindow, Window: 2} }, true},
		{"no ranks", func(v *meta.View) { v.Ranks = 0 }, false},
		{"too many ranks", func(v *meta.View) { v.Ranks = meta.MaxRanks + 1 }, false},
		{"no step", func(v *meta.View) { v.Step.N = 0 }, false},
		{"too big a step", func(v *meta.View) { v.Step.N = meta.MaxBatch + 1 }, false},
		{"a number of chunks", func(v *meta.View) { v.Step.Unit = meta.UnitChunk }, false},
		{"an unknown unit", func(v *meta.View) { v.Step.Unit = 3 }, false},
		{"no window", func(v *meta.View) { v.Order.Kind = meta.OrderWindow }, false},
		{"too small a window", func(v *meta.View) { v.Order = meta.Order{Kind: meta.OrderWindow, Window: 1} }, false},
		{"too big a window", func(v *meta.View) { v.Order = meta.Order{Kind: meta.OrderWindow, Window: meta.MaxBatch + 1} }, false},
		{"a window of a full order", func(v *meta.View) { v.Order.Window = 5 }, false},
		{"an unknown order", func(v *meta.View) { v.Order.Kind = 3 }, false},
		{"an unknown tail", func(v *meta.View) { v.Tail = 3 }, false},
		{"strict", func(v *meta.View) { v.Assign = meta.AssignStrict }, true},
		{"an unknown assignment", func(v *meta.View) { v.Assign = 2 }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := defaults
			tt.change(&v)
			if err := v.Check(); (err == nil) != tt.ok || err != nil && !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("Check() = %v", err)
			}
		})
	}
}

func TestCheckName(t *testing.T) {
	tests := []struct {
		name string
		ok   bool
	}{
		{"a", true}, {"7", true}, {"_x", true}, {"imagenet-1k_v2.0", true}, {"A..b--c", true},
		{strings.Repeat("x", meta.MaxName), true},
		{"", false}, {".", false}, {"..", false}, {".hidden", false}, {"-rf", false},
		{"a b", false}, {"a/b", false}, {"a@b", false}, {"a\x00", false}, {"a\n", false},
		{"a,b", false}, {"a=b", false}, {"[", false}, {"`", false}, {"{", false},
		{"é", false}, {"\xff", false}, {"a\xc1", false},
		{strings.Repeat("x", meta.MaxName+1), false},
	}
	for _, tt := range tests {
		if err := meta.CheckName(tt.name); (err == nil) != tt.ok || err != nil && !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("CheckName(%q) = %v", tt.name, err)
		}
	}
}

func TestSplitView(t *testing.T) {
	tests := []struct {
		name, dataset, options string
		isView                 bool
	}{
		{"imagenet", "imagenet", "", false},
		{"imagenet@epoch=3", "imagenet", "epoch=3", true},
		{"imagenet@", "imagenet", "", true},
		{"@epoch=3", "", "epoch=3", true},
		{"a@b@c", "a", "b@c", true},
	}
	for _, tt := range tests {
		dataset, options, isView := meta.SplitView(tt.name)
		if dataset != tt.dataset || options != tt.options || isView != tt.isView {
			t.Errorf("SplitView(%q) = %q, %q, %v", tt.name, dataset, options, isView)
		}
	}
}

func TestBytes(t *testing.T) {
	tests := []struct {
		s    string
		n    uint64
		back string
	}{
		{"0B", 0, "0B"}, {"1B", 1, "1B"}, {"1023B", 1023, "1023B"},
		{"1024B", 1 << 10, "1KiB"}, {"1K", 1 << 10, "1KiB"}, {"1kB", 1000, "1000B"},
		{"512MiB", 512 << 20, "512MiB"}, {"1024M", 1 << 30, "1GiB"}, {"1MB", 1e6, "1000000B"},
		{"3GB", 3e9, "3000000000B"}, {"1536MiB", 1536 << 20, "1536MiB"}, {"8T", 8 << 40, "8TiB"},
		{"8388607TiB", 8388607 << 40, "8388607TiB"},
		{"9223372036854775807B", math.MaxInt64, "9223372036854775807B"},
	}
	for _, tt := range tests {
		n, err := meta.ParseBytes(tt.s)
		if err != nil || n != tt.n || meta.FormatBytes(n) != tt.back {
			t.Errorf("ParseBytes(%q) = %d, error %v, written %s", tt.s, n, err, meta.FormatBytes(n))
		}
	}
	for _, s := range []string{"", "B", "1", "1b", "1KB", "1iB", "01B", "+1B", "-1B", " 1B", "1 B", "1B ", "1.5GiB", "1PiB", "9223372036854775808B", "8388608TiB", "1MiBB"} {
		if n, err := meta.ParseBytes(s); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("ParseBytes(%q) = %d, error %v", s, n, err)
		}
	}
}

func TestFormatBytesIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(0, math.MaxInt64).Draw(t, "n")
		n >>= rapid.IntRange(0, 62).Draw(t, "right")
		zeros := rapid.SampledFrom([]int{0, 10, 20, 30, 40}).Draw(t, "zeros")
		n = n >> zeros << zeros
		if back, err := meta.ParseBytes(meta.FormatBytes(n)); err != nil || back != n {
			t.Fatalf("%d is written %s, read back %d, error %v", n, meta.FormatBytes(n), back, err)
		}
	})
}

// FuzzView: whatever the options, With either refuses them as invalid or
// gives a view whose name opens the same view again.
func FuzzView(f *testing.F) {
	for _, s := range []string{"", "@", "epoch=3,ranks=16", "batch=64MiB,order=window:100", "step=chunk,tail=pad,seed=1", "batch=1,step=1", "epoch=\x00", "ranks=1048576,batch=1TiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, options string) {
		v, err := defaults.With(options)
		if err != nil {
			if !errors.Is(err, meta.ErrInvalid) || fmt.Sprint(err) == "" {
				t.Fatalf("With(%q): %v", options, err)
			}
			return
		}
		_, again, _ := meta.SplitView(v.String())
		if got, err := defaults.With(again); err != nil || got != v {
			t.Fatalf("With(%q) = %v, whose name opens %v, error %v", options, v, got, err)
		}
		if len(again) > 255-meta.MaxName {
			t.Fatalf("%q leaves no room for a dataset's name", again)
		}
	})
}

// The shortest name of a view has the options that are not the dataset's own, and stands
// for the view.
func TestShort(t *testing.T) {
	for options, want := range map[string]string{
		"epoch=0": "imagenet", "ranks=4": "imagenet", "epoch=3": "imagenet@epoch=3",
		"tail=drop,epoch=1": "imagenet@epoch=1,tail=drop",
		"batch=101":         "imagenet@batch=101", "step=404": "imagenet@batch=101", "step=403": "imagenet@step=403",
		"ranks=3,batch=64MiB": "imagenet@ranks=3,batch=64MiB", "batch=chunk": "imagenet@batch=chunk",
		"batch=256": "imagenet", "ranks=8": "imagenet@ranks=8",
	} {
		v, err := defaults.With(options)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Short(defaults); got != want {
			t.Errorf("%s: got %s, want %s", options, got, want)
		}
	}
}

// A time is written as options take it.
func TestFormatTime(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "10s": 10 * time.Second, "1m": time.Minute, "1m30s": 90 * time.Second, "10m": 10 * time.Minute,
		"1h": time.Hour, "1h0m5s": time.Hour + 5*time.Second, "1h10m": 70 * time.Minute, "168h": 7 * 24 * time.Hour, "20ms": 20 * time.Millisecond,
	} {
		if got := meta.FormatTime(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
		if back, err := time.ParseDuration(want); err != nil || back != d {
			t.Errorf("%s is read as %v, %v", want, back, err)
		}
	}
}
