package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// A petabyte in chunks of 128 MiB, in three replicas on a thousand hosts in forty
// racks as HDFS places them: one on any, two in another rack. Ranks are on so many
// of the hosts. What is measured is finding out that locality matters, dividing
// all stretches of an epoch, and the owners of all chunks; and the memory that the
// process has at most for it, without file pages, which the kernel can take back.
func BenchmarkPetabyte(b *testing.B) {
	x := petabyteOf(b)
	for _, hosts := range []int{4, 1000} {
		for _, order := range []string{"none", "full"} {
			b.Run(fmt.Sprintf("hosts=%d/order=%s", hosts, order), func(b *testing.B) {
				of := plan.NewVersion(x, [32]byte{})
				v, err := meta.View{Dataset: "d", Ranks: 1024}.With("batch=chunk,order=" + order)
				if err != nil {
					b.Fatal(err)
				}
				var seats []plan.Seat
				for rank := range 1024 {
					seats = append(seats, plan.Seat{Host: petabyteHost(rank * hosts / 1024), Ranks: 1})
				}
				debug.FreeOSMemory()
				resetPeak(b)
				for b.Loop() {
					p, begin := plan.New(v, of), spent()
					if err := p.Place(seats); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric((spent() - begin).Seconds(), "placing-cpu-s")
					begin = spent()
					count, steps := p.Stretches()
					for number := range count {
						if _, err := p.AppendChunks(nil, 0, number*steps); err != nil {
							b.Fatal(err)
						}
						if number == 0 {
							b.ReportMetric((spent() - begin).Seconds(), "first-stretch-cpu-s")
						}
					}
					b.ReportMetric((spent() - begin).Seconds(), "epoch-cpu-s")
					b.ReportMetric(peakAnon(b), "epoch-MiB")
					begin = spent()
					if err := of.Allot(seats); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric((spent() - begin).Seconds(), "owners-cpu-s")
				}
				b.ReportMetric(peakAnon(b), "all-MiB")
				runtime.KeepAlive(of)
			})
		}
	}
}

func petabyteHost(n int) string { return fmt.Sprintf("dn%04d.example.com", n) }

func petabyteOf(b *testing.B) *index.Index {
	path := filepath.Join(b.TempDir(), "index")
	w, err := index.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	const chunks, size, hosts, inRack = 8 << 20, 128 << 20, 1000, 25
	var names []string
	for i := range hosts {
		names = append(names, petabyteHost(i))
		w.Rack(names[i], fmt.Sprintf("/rack%02d", i/inRack))
	}
	f := w.AddFile(index.File{Path: "f", Size: 1 << 50})
	for c := range int64(chunks) {
		h := uint64(c) * 0x9e3779b97f4a7c15
		h ^= h >> 31
		second := h >> 12 % hosts
		w.BeginChunk(names[h%hosts], names[second], names[second/inRack*inRack+h>>40%inRack])
		if err := w.AddStride(f, c<<20, 1<<20, 1); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Commit("petabyte"); err != nil {
		b.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close() })
	return x
}

// spent is the processor time of this process: others run beside it.
func spent() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resetPeak has the kernel begin anew with the most memory that a process had.
func resetPeak(b *testing.B) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}

// peakAnon is at most that, in MiB, without the file pages there are now.
func peakAnon(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	field := func(name string) (kib float64) {
		_, rest, _ := strings.Cut(string(text), name+":")
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			b.Fatal(err)
		}
		return kib
	}
	return (field("VmHWM") - field("RssFile")) / 1024
}
