package hdfs_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/fetch/hdfs"
)

// A split is read here once another node has had it for long, and not before; what is
// found first counts.
func TestOverdueSplits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := hdfs.NewDivision(4, 8, "a", "b")
		_, lent, _ := d.Lend(t.Context(), "b")
		if lent != 1 {
			t.Fatalf("b gets split %d, want one that it holds", lent)
		}
		for _, want := range []int{0, 2, 3} {
			if got, ok := d.Take(t.Context(), "a"); !ok || got != want {
				t.Fatalf("this node gets split %d, want %d", got, want)
			}
			d.Put(want, nil)
		}
		begin := time.Now()
		if got, ok := d.Take(t.Context(), "a"); !ok || got != lent || time.Since(begin) != hdfs.Overdue {
			t.Fatalf("after %v split %d is to be read here, want %d after %v", time.Since(begin), got, lent, hdfs.Overdue)
		}
		d.Put(lent, nil)
		d.Put(lent, errors.New("the other node says this later"))
		for i := range 4 {
			if err := d.Next(t.Context()); err != nil {
				t.Errorf("split %d: %v", i, err)
			}
		}
	})
}

// What another node did not read is read here, before the rest and by no third node.
func TestReturnedSplits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := hdfs.NewDivision(3, 8, "a", "a", "a")
		asked, lent, _ := d.Lend(t.Context(), "b")
		d.GiveBack(lent)
		if asked.Err() == nil {
			t.Error("the node is still asked")
		}
		if _, next, _ := d.Lend(t.Context(), "c"); next != 1 {
			t.Errorf("another node gets split %d, want 1", next)
		}
		if got, _ := d.Take(t.Context(), "a"); got != lent {
			t.Errorf("this node gets split %d, want %d", got, lent)
		}
	})
}

// No more is handed out than may be open, and all that wait leave when they are told to.
func TestSplitsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := hdfs.NewDivision(5, 2, "a")
		for want := range 2 {
			if got, _ := d.Take(ctx, "a"); got != want {
				t.Fatalf("split %d, want %d", got, want)
			}
		}
		third := make(chan bool)
		go func() { _, ok := d.Take(ctx, "a"); third <- ok }()
		synctest.Wait()
		select {
		case <-third:
			t.Fatal("a third split is handed out")
		default:
		}
		d.Put(0, nil)
		if err := d.Next(ctx); err != nil || !<-third {
			t.Fatalf("no split when there is room, %v", err)
		}
		go func() { _, ok := d.Take(ctx, "a"); third <- ok }()
		go func() { _, _, ok := d.Lend(ctx, "b"); third <- ok }()
		go func() { third <- d.Next(ctx) == nil }()
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
	d := hdfs.NewDivision(2, 8)
	var files []*os.File
	for range 3 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	d.PutFile(1, files[0])
	d.PutFile(1, files[1])
	d.Put(0, nil)
	if err := d.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.PutFile(0, files[2])
	d.Close()
	for i, f := range files {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("file %d is open: %v", i, err)
		}
	}
}
