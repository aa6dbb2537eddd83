package mapfiles

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta/state"
	"rankfs/shuffle/access"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/pieces"
)

// BenchmarkTake is the keeping of a map of 32 parts, and its removal: in memory, and on a disk where it
// lasts, by one commit at a time and by eight for each processor.
func BenchmarkTake(b *testing.B) {
	log, used := slog.New(slog.DiscardHandler), new(access.Names)
	used.Init(0)
	d, err := disk.Open(b.TempDir(), 1<<40, "00000000000000aa", filepath.Join(b.TempDir(), "note"), log)
	if err != nil {
		b.Fatal(err)
	}
	root, err := d.Job(7)
	if err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	ram, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	memoryOnly, onDisk := New(ram, memory.New(1<<40, nil, log), used), New(ram, memory.New(1<<40, nil, log), used)
	onDisk.AddDisk(d, root)
	b.Cleanup(func() {
		if err := errors.Join(memoryOnly.Close(), onDisk.Close(), ram.Close(), d.Close()); err != nil {
			b.Error(err)
		}
	})
	const parts = 32
	var number atomic.Uint64
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		piece := strings.Repeat("0123456789abcdef", size/16/parts)
		content := []byte(strings.Repeat(piece, parts))
		var t pieces.Table
		for n := range parts {
			t = pieces.AppendRow(t, int64((n+1)*len(piece)), xxhash.Sum64String(piece))
		}
		for _, in := range []struct {
			name    string
			files   *Files
			lasting bool
			atOnce  int
		}{{"memory", memoryOnly, false, 1}, {"disk", onDisk, true, 1}, {"commits", onDisk, true, 8}} {
			b.Run(fmt.Sprintf("%s/%dKiB", in.name, size>>10), func(b *testing.B) {
				b.SetParallelism(in.atOnce)
				take := func() {
					c := state.Commit{Map: number.Add(1), Writer: "00000000000000bb", Size: int64(size), Sum: t.Sum()}
					name := Path(9, c)
					if err := in.files.Take(b.Context(), in.lasting, name, t, bytes.NewReader(content)); err != nil {
						b.Error(err)
					}
					in.files.Drop(name)
				}
				if in.atOnce == 1 {
					for b.Loop() {
						take()
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						take()
					}
				})
			})
		}
	}
}
