package splits_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/fetch/splits"
	"rankfs/meta"
)

// ranges is a source whose splits are ranges of a hundred keys: of each range some are there.
type ranges struct {
	begin  chan struct{} // before it is closed none is read; nil: at once
	looked atomic.Int64
}

func (r *ranges) Find(ctx context.Context, split int, w *splits.Findings) error {
	if r.begin != nil {
		select {
		case <-r.begin:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.looked.Add(1)
	for key := 100 * split; key < 100*split+100; key += split%7 + 1 {
		w.Put(uint64(key))
	}
	return nil
}

func (r *ranges) Request(split int) ([]byte, error) {
	return strconv.AppendInt(nil, int64(split), 10), nil
}

func (r *ranges) Check(split int, found *splits.Findings) error {
	for {
		key, more, err := found.Next()
		if err != nil || !more {
			return err
		}
		if key/100 != uint64(split) {
			return fmt.Errorf("key %d %w: it is not in range %d", key, meta.ErrCorrupt, split)
		}
	}
}

// scan is one of many splits: more than are read at a time.
func (r *ranges) scan(t *testing.T) *splits.Scan {
	return &splits.Scan{
		Source: r, Scheme: "keys", Hosts: make([][]string, 10*runtime.NumCPU()), Known: func(int) bool { return false }, Here: "here",
		Kept: splits.NewStore(t.TempDir(), "keys", "1"), Missed: func(int, string, bool, error) {},
	}
}

// keys are those that a scan finds, in the order in which it gives them.
func keys(ctx context.Context, s *splits.Scan) (all []uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = s.Each(ctx, func(split int, found *splits.Findings) error {
		if found == nil {
			return nil
		}
		for {
			key, more, err := found.Next()
			if err != nil || !more {
				return err
			}
			all = append(all, key)
		}
	})
	return all, err
}

// wanted are the keys of all splits in their order, but for those that are known.
func wanted(s *splits.Scan) (all []uint64) {
	for split := range s.Hosts {
		for key := 100 * split; key < 100*split+100 && !s.Known(split); key += split%7 + 1 {
			all = append(all, uint64(key))
		}
	}
	return all
}

// finds looks through splits as another node does.
func finds(ctx context.Context, scheme string, request []byte, w io.Writer) error {
	look := func(ctx context.Context, request []byte, w *splits.Findings) error {
		split, err := strconv.Atoi(string(request))
		if err != nil {
			return err
		}
		return new(ranges).Find(ctx, split, w)
	}
	f, size, err := splits.NewFinder("", 32<<20, map[string]splits.Look{"keys": look}).Find(ctx, scheme, request)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, io.LimitReader(f, size))
	return err
}

// Whichever nodes look through the splits, well or badly or not at all: the same is found, in
// the same order. Nothing is read here before the helper has done what it does.
func TestScanByOtherNodes(t *testing.T) {
	says := func(b ...byte) func(context.Context, string, []byte, io.Writer) error {
		return func(_ context.Context, _ string, _ []byte, w io.Writer) error {
			_, err := w.Write(b)
			return err
		}
	}
	fails := func(err error) func(context.Context, string, []byte, io.Writer) error {
		return func(context.Context, string, []byte, io.Writer) error { return err }
	}
	for _, test := range []struct {
		name  string
		find  func(ctx context.Context, scheme string, request []byte, w io.Writer) error
		helps bool
	}{
		{"it helps", finds, true},
		{"it breaks off in the middle", func(ctx context.Context, scheme string, request []byte, w io.Writer) error {
			var all bytes.Buffer
			if err := finds(ctx, scheme, request, &all); err != nil {
				return err
			}
			w.Write(all.Bytes()[:all.Len()/2])
			return io.ErrUnexpectedEOF
		}, false},
		{"it is busy", fails(meta.ErrBusy), false},
		{"it sees another version", fails(meta.ErrStale), false},
		{"it does not know the call", fails(errors.ErrUnsupported), false},
		{"it finds keys of another range", says(0xff, 0xff, 0x7f), false},
		{"it finds half a key", says(0x80), false},
		{"it finds no number", says(bytes.Repeat([]byte{0xff}, 20)...), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &ranges{begin: make(chan struct{})}
				begin := sync.OnceFunc(func() { close(r.begin) })
				s := r.scan(t)
				var missed atomic.Int64
				s.Missed = func(_ int, host string, slow bool, cause error) {
					if host != "there" || slow || cause == nil {
						t.Errorf("host %q did not look through a split, slow: %v, %v", host, slow, cause)
					}
					if missed.Add(1) == 2 { // both that it was asked for
						begin()
					}
				}
				s.Helpers = []splits.Helper{{Host: "there", Find: func(ctx context.Context, scheme string, request []byte, w io.Writer) error {
					if test.helps {
						begin()
					}
					return test.find(ctx, scheme, request, w)
				}}}
				got, err := keys(t.Context(), s)
				if err != nil || !slices.Equal(got, wanted(s)) {
					t.Errorf("other keys are found, %d, %v", len(got), err)
				}
				if here := r.looked.Load(); test.helps == (here == int64(len(s.Hosts))) {
					t.Errorf("%d of %d splits are read here", here, len(s.Hosts))
				}
			})
		})
	}
}

// A node that does not answer keeps a scan waiting for a while and no longer: its splits are read here.
func TestScanByASilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &ranges{begin: make(chan struct{})}
		begin := sync.OnceFunc(func() { close(r.begin) })
		s := r.scan(t)
		var given atomic.Int64
		s.Helpers = []splits.Helper{{Find: func(ctx context.Context, _ string, _ []byte, _ io.Writer) error {
			begin()
			<-ctx.Done()
			given.Add(1)
			return ctx.Err()
		}}}
		got, err := keys(t.Context(), s)
		if err != nil || !slices.Equal(got, wanted(s)) || given.Load() == 0 {
			t.Errorf("other keys are found, %d, %v; %d splits were taken back", len(got), err, given.Load())
		}
	})
}

// Splits that are known are not read, and no node is asked where all others are read at once.
func TestKnownSplits(t *testing.T) {
	for _, few := range []bool{false, true} {
		var r ranges
		s := r.scan(t)
		s.Known = func(split int) bool { return few && split > 2 || split%3 == 1 }
		asked := false
		s.Helpers = []splits.Helper{{Find: func(context.Context, string, []byte, io.Writer) error {
			asked = true
			return nil
		}}}
		if !few {
			s.Helpers = nil
		}
		got, err := keys(t.Context(), s)
		if err != nil || asked || !slices.Equal(got, wanted(s)) {
			t.Errorf("%d keys are found, want %d, %v; another node is asked: %v", len(got), len(wanted(s)), err, asked)
		}
	}
}

// A scan that was interrupted reads what is missing, and trusts nothing that a crash may have
// torn. What it keeps for that is of one version.
func TestScanGoesOn(t *testing.T) {
	scratch := t.TempDir()
	with := func(version string) (*ranges, *splits.Scan) {
		r := new(ranges)
		s := r.scan(t)
		s.Kept = splits.NewStore(scratch, "keys", version)
		return r, s
	}
	_, s := with("1")
	enough, half := errors.New("enough"), len(s.Hosts)/2
	err := s.Each(t.Context(), func(split int, _ *splits.Findings) error {
		if split == half {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(scratch, "*", "[0-9]*"))
	if err != nil || len(kept) < half {
		t.Fatalf("findings of %d splits are kept, %v", len(kept), err)
	}
	for i, damage := range []func(file string, b []byte) error{
		func(file string, b []byte) error { return os.Truncate(file, 0) },
		func(file string, b []byte) error { return os.Truncate(file, 7) },
		func(file string, b []byte) error { return os.Truncate(file, int64(len(b)-9)) },
		func(file string, b []byte) error { b[len(b)/2] ^= 1; return os.WriteFile(file, b, 0o600) },
	} {
		b, err := os.ReadFile(kept[i])
		if err := errors.Join(err, damage(kept[i], b)); err != nil {
			t.Fatal(err)
		}
	}
	r, s := with("1")
	if got, err := keys(t.Context(), s); err != nil || !slices.Equal(got, wanted(s)) {
		t.Errorf("other keys are found, %d, %v", len(got), err)
	}
	if n, want := r.looked.Load(), len(s.Hosts)-len(kept)+4; n != int64(want) {
		t.Errorf("%d splits are read, want %d: %d were kept, of them 4 torn", n, want, len(kept))
	}
	r, other := with("2")
	if _, err := keys(t.Context(), other); err != nil || r.looked.Load() != int64(len(s.Hosts)) {
		t.Errorf("%d splits of another version are read, %v", r.looked.Load(), err)
	}
	s.Kept.Remove()
	other.Kept.Remove()
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// A node looks through so many splits for others at a time, of whichever sources, and keeps so
// much for them. Of a source that it does not know it says what to do about it.
func TestFinder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	leave := make(chan struct{})
	begun, done := make(chan struct{}), make(chan error)
	f := splits.NewFinder(dir, 32<<20, map[string]splits.Look{
		"waits": func(_ context.Context, _ []byte, w *splits.Findings) error {
			w.Put(5)
			begun <- struct{}{}
			<-leave
			return nil
		},
		"none": func(context.Context, []byte, *splits.Findings) error { return nil },
		"much": func(_ context.Context, _ []byte, w *splits.Findings) error {
			for range 4 << 20 {
				w.Put(1 << 63)
			}
			return nil
		},
		"stale": func(context.Context, []byte, *splits.Findings) error { return meta.ErrStale },
	})
	for range runtime.NumCPU() {
		go func() {
			file, size, err := f.Find(t.Context(), "waits", nil)
			if err == nil && size != 1 {
				err = fmt.Errorf("found %d bytes, want one", size)
			}
			file.Close()
			done <- err
		}()
		<-begun
	}
	if _, _, err := f.Find(t.Context(), "none", nil); !errors.Is(err, meta.ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	close(leave)
	for range runtime.NumCPU() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for scheme, want := range map[string]error{"much": meta.ErrNoSpace, "stale": meta.ErrStale, "rows": errors.ErrUnsupported, "": errors.ErrUnsupported} {
		_, _, err := f.Find(t.Context(), scheme, nil)
		if !errors.Is(err, want) || want == errors.ErrUnsupported && !strings.Contains(err.Error(), fmt.Sprintf("%q", scheme)+" for others: its release is older") {
			t.Errorf("a split of %q: %v, want %v", scheme, err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
