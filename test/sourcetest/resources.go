package sourcetest

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rankfs/test/eventually"
)

func releases(t *testing.T, f Fixture) {
	use := func() {
		d := Attach(t, f)
		want(t, d, f, 0, min(d.Records(), 100))
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Read(t.Context(), nil, nil); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Read after Close: got %v, want ErrClosed", err)
		}
		src := open(t, f)
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
	use() // what the process opens once and keeps is open now
	fds, maps, routines := descriptors(t), mappings(t), goleak.IgnoreCurrent()
	for range 3 {
		use()
	}
	if now := descriptors(t); now > fds { // fewer: some that were kept for a while are closed
		t.Errorf("%d descriptors, %d before", now, fds)
	}
	if now := mappings(t); now > maps {
		t.Errorf("%d mapped files, %d before", now, maps)
	}
	if err := goleak.Find(routines); err != nil {
		t.Error(err)
	}
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func mappings(t *testing.T) int {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, " /") {
			n++
		}
	}
	return n
}

// A source may map what is in the page cache while it is read from. Without a
// reader, little may stay in memory through mappings.
const residentBound = 16 << 20

func resident(t *testing.T, f Fixture) {
	d := Attach(t, f)
	before := residentFile(t)
	for range 2 {
		for i := range d.Chunks() {
			c := d.Chunk(i)
			want(t, d, f, c.First, c.Records)
		}
	}
	eventually.Done(t, time.Minute, "little is resident after the last read", func() error {
		if now := residentFile(t) - before; now > residentBound {
			return fmt.Errorf("%d bytes are, want at most %d", now, residentBound)
		}
		return nil
	})
}

var rssFile = regexp.MustCompile(`RssFile:\s*(\d+) kB`)

// residentFile is the bytes of its mapped files that this process has in memory.
func residentFile(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	field := rssFile.FindSubmatch(status)
	if field == nil {
		t.Fatal("no RssFile in /proc/self/status")
	}
	n, err := strconv.ParseInt(string(field[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
