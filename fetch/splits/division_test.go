package splits

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// numbered is a division of n splits, the first of them on these hosts.
func numbered(n, ahead int, hosts ...string) *division {
	all, on := make([]int, n), make([][]string, n)
	for i := range all {
		all[i] = i
		if i < len(hosts) {
			on[i] = hosts[i : i+1]
		}
	}
	return newDivision(all, on, ahead)
}

// A split is read here once another node has had it for long, and not before; what is
// found first counts.
func TestOverdueSplits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d := numbered(4, 8, "a", "b")
		_, lent, _ := d.lend(ctx, "b")
		if lent != 1 {
			t.Fatalf("b gets split %d, want one that it holds", lent)
		}
		for _, want := range []int{0, 2, 3} {
			if got, ok := d.take(ctx, "a"); !ok || got != want {
				t.Fatalf("this node gets split %d, want %d", got, want)
			}
			d.put(want, result{})
		}
		begin := time.Now()
		if got, ok := d.take(ctx, "a"); !ok || got != lent || time.Since(begin) != overdue {
			t.Fatalf("after %v split %d is to be read here, want %d after %v", time.Since(begin), got, lent, overdue)
		}
		d.put(lent, result{})
		d.put(lent, result{nil, errors.New("the other node says this later")})
		for i := range 4 {
			if _, err := d.next(ctx); err != nil {
				t.Errorf("split %d: %v", i, err)
			}
		}
	})
}

// What another node did not read is read here, before the rest and by no third node.
func TestReturnedSplits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := numbered(3, 8, "a", "a", "a")
		asked, lent, _ := d.lend(t.Context(), "b")
		d.giveBack(lent)
		if asked.Err() == nil {
			t.Error("the node is still asked")
		}
		if _, next, _ := d.lend(t.Context(), "c"); next != 1 {
			t.Errorf("another node gets split %d, want 1", next)
		}
		if got, _ := d.take(t.Context(), "a"); got != lent {
			t.Errorf("this node gets split %d, want %d", got, lent)
		}
	})
}

// No more is handed out than may be open, and all that wait leave when they are told to.
func TestSplitsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := numbered(5, 2, "a")
		for want := range 2 {
			if got, _ := d.take(ctx, "a"); got != want {
				t.Fatalf("split %d, want %d", got, want)
			}
		}
		third := make(chan bool)
		go func() { _, ok := d.take(ctx, "a"); third <- ok }()
		synctest.Wait()
		select {
		case <-third:
			t.Fatal("a third split is handed out")
		default:
		}
		d.put(0, result{})
		if _, err := d.next(ctx); err != nil || !<-third {
			t.Fatalf("no split when there is room, %v", err)
		}
		go func() { _, ok := d.take(ctx, "a"); third <- ok }()
		go func() { _, _, ok := d.lend(ctx, "b"); third <- ok }()
		go func() { _, err := d.next(ctx); third <- err == nil }()
		synctest.Wait()
		cancel()
		for range 3 {
			if <-third {
				t.Error("something is handed out after the end")
			}
		}
	})
}

// Findings that come twice, or too late, are closed.
func TestFindingsAreClosed(t *testing.T) {
	d := numbered(2, 8)
	var files []*os.File
	for range 3 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	d.put(1, result{&Findings{file: files[0]}, nil})
	d.put(1, result{&Findings{file: files[1]}, nil})
	d.put(0, result{})
	if _, err := d.next(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.put(0, result{&Findings{file: files[2]}, nil})
	d.close()
	for i, f := range files {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("file %d is open: %v", i, err)
		}
	}
}
