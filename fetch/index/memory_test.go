package index_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"rankfs/fetch/index"
)

// A table of 48 MB is built and opened without becoming resident.
func TestMemory(t *testing.T) {
	const records, files = 2_000_000, 200_000
	heap := heapInUse()
	var grown uint64
	path := build(t, func(b *index.Builder) {
		for i := range files {
			f := b.AddFile(index.File{Path: fmt.Sprintf("%060d", i), Size: 1 << 20})
			for range records / files {
				b.Add(index.Extent{File: f, Len: 7})
			}
		}
		grown = heapInUse() - min(heap, heapInUse())
	})
	if grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes while building", grown)
	}
	before := residentFile(t)
	x := open(t, path)
	if after := residentFile(t); after > before+4<<20 {
		t.Errorf("%d bytes became resident on opening an index of %d", after-before, x.FileBytes())
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// residentFile is how much of its file mappings this process has in memory.
func residentFile(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	field := regexp.MustCompile(`RssFile:\s*(\d+) kB`).FindSubmatch(status)
	if field == nil {
		t.Fatal("no RssFile in /proc/self/status")
	}
	n, _ := strconv.ParseInt(string(field[1]), 10, 64)
	return n << 10
}
