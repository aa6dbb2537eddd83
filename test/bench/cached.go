package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// onDisk makes a dataset of batches of 64 MiB, more than memory may hold, with
// all of it on disk.
func (b *bench) onDisk(batches int) (dir, data string) {
	data = b.data(fmt.Sprintf("disk-%d.bin", batches), "fixed", "-n", fmt.Sprint(64*batches), "-size", fmt.Sprint(mib))
	b.mountOnDisk()
	dir = b.create("disk", "file:"+data, "--as", fmt.Sprintf("fixed:%d", mib), "--batch", "64")
	b.rankfs("cache", "pin", "disk", "--tier", "nvme")
	b.rankfs("warm", "disk")
	return dir, data
}

func (b *bench) mountOnDisk() {
	b.mount("--ram", "16MiB", "--nvme", filepath.Join(b.dir, "nvme")+":8GiB")
}

// coldNVMe compares an epoch of batches that are on disk, by a daemon that was
// started just now and has to check what it finds, with what fio reads of the
// same device, past the page cache and eight requests at a time.
func coldNVMe(b *bench) (ours, theirs func() float64) {
	const batches = 32
	dir, data := b.onDisk(batches)
	ours = func() float64 {
		b.umount()
		dropCaches()
		b.mountOnDisk()
		speed := value(b.tool("epoch", "-p", "1", "mount", dir), "GB/s")
		if n := b.status().Counters.Fills; n > 0 {
			check(fmt.Errorf("%d batches were not on disk", n))
		}
		return speed
	}
	return ours, func() float64 { return fio(batches*64*mib, data) }
}

// fio is how fast fio reads files of so many bytes, one after the other, past the page
// cache and eight requests at a time.
func fio(size int64, files ...string) float64 {
	var o struct {
		Jobs []struct {
			Read struct {
				Bytes   float64 `json:"bw_bytes"`
				IOBytes int64   `json:"io_bytes"`
			} `json:"read"`
		} `json:"jobs"`
	}
	check(json.Unmarshal([]byte(output("fio", "--name=read", "--filename="+strings.Join(files, ":"), "--readonly", "--rw=read", "--bs=1M", "--direct=1",
		"--file_service_type=sequential", "--ioengine=libaio", "--iodepth=8", "--output-format=json")), &o))
	if len(o.Jobs) != 1 || o.Jobs[0].Read.IOBytes != size {
		check(fmt.Errorf("fio read something else: %+v", o))
	}
	return o.Jobs[0].Read.Bytes / 1e9
}

// warmNVMe compares an epoch of batches on disk that were read before, in place,
// with one of files with the same bytes on that disk.
func warmNVMe(b *bench) (ours, theirs func() float64) {
	dir, _ := b.onDisk(16)
	files := filepath.Join(b.dir, "files")
	check(os.RemoveAll(files))
	check(os.MkdirAll(files, 0755))
	quiet("cp", "-r", dir+"/rank-0", files)
	unix.Sync()
	side := func(dir string) func() float64 {
		return func() float64 { return value(b.tool("epoch", "-p", "1", "mount", dir), "GB/s") }
	}
	return side(dir), side(files)
}

// stalls is how much of its time a rank waits for batches that are not ready, as
// the daemon accounts for it, if it works on each for as long as 80 % of the
// source's bandwidth leaves: from the third step of its first epoch to the end of
// its third. Memory is for a quarter of the data.
func stalls(b *bench) (misses int) {
	source, dir := b.slow(slowRate, b.data("slow.bin", "fixed", "-n", fmt.Sprint(slowRecords), "-size", fmt.Sprint(mib)))
	path := filepath.Join(dir, "slow.bin")
	for _, order := range []string{"none", "full"} {
		b.mount("--ram", "48MiB")
		dir := b.create("d", "file:"+path, "--as", fmt.Sprintf("fixed:%d", mib), "--batch", "1", "--order", order)
		source.speed()
		quiet("sh", "-c", `cat "$0"@epoch=9/rank-0/batch-*[0-9]`, dir)
		step := time.Duration(mib / (0.8 * source.speed()) * float64(time.Second))
		b.rankfs("cache", "evict", "d")
		var opens time.Duration
		steps := func(epoch, from, to int) {
			for k := from; k < to; k++ {
				took, err := open(fmt.Sprintf("%s@epoch=%d/rank-0/batch-%06d", dir, epoch, k))
				check(err)
				opens += took
				time.Sleep(step)
			}
		}
		steps(0, 0, 2)
		before, begin := b.status().Counters.WaitSeconds, time.Now()
		opens = 0
		steps(0, 2, slowRecords)
		for epoch := 1; epoch < slowEpochs; epoch++ {
			steps(epoch, 0, slowRecords)
		}
		all := time.Since(begin).Seconds()
		misses += missed(outcome{
			name:   fmt.Sprintf("cached, share of a rank's time that it waits at 80 %% of the source, order=%s", order),
			values: []float64{100 * (b.status().Counters.WaitSeconds - before) / all}, unit: "%", target: 1, atMost: true,
			note: fmt.Sprintf("%d epochs of %d steps of %v; opens and mappings of what is ready took %.1f %%",
				slowEpochs, slowRecords, step.Round(time.Microsecond), 100*opens.Seconds()/all),
		})
		b.reset()
	}
	return misses
}

// open is how long a rank takes to open a batch and map it.
func open(batch string) (time.Duration, error) {
	start := time.Now()
	f, err := os.Open(batch)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	mem, err := unix.Mmap(int(f.Fd()), 0, mib, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return 0, err
	}
	took := time.Since(start)
	return took, unix.Munmap(mem)
}

// partitions has two ranks open 10,000 of 8.4 million batches of a page a second
// together, in the order of the source, so that it is known of all when they
// come; fewer where the kernel and the ranks have too little of the processors.
// What choosing levels takes at that rate is measured without them.
func partitions(b *bench) (misses int) {
	const records, ranks, rate, seconds = 8_400_000, 2, 10_000, 90
	data := filepath.Join(b.dir, "partitions.bin")
	f, err := os.Create(data)
	check(err)
	check(f.Truncate(records * 4096)) // none of it is written anywhere
	check(f.Close())
	b.mount("--ram", "128MiB")
	dir := b.create("d", "file:"+data, "--as", "fixed:4096", "--batch", "1", "--ranks", fmt.Sprint(ranks))
	before, begin := b.status(), time.Now()
	var all sync.WaitGroup
	var errs [ranks]error
	for rank := range ranks {
		all.Go(func() { errs[rank] = openAll(fmt.Sprintf("%s/rank-%d", dir, rank), rate*seconds/ranks, rate/ranks) })
	}
	most := 0.0
	for range seconds {
		time.Sleep(time.Second)
		most = max(most, resident(before.PID))
	}
	all.Wait()
	check(errors.Join(errs[:]...))
	took, after := time.Since(begin).Seconds(), b.status()
	last := resident(after.PID)
	most = max(most, last)
	b.reset()
	made := output("go", "test", "-run", "^$", "-bench", "^Benchmark(Choice|Worth)$/^mckp$", "-benchtime", "1s", "./cache/policy")
	for _, view := range []string{"order=none", "order=full"} {
		misses += b.choosingAtRate(view, rate, metric(made, "cpu-ns/op")/1e9)
	}
	return misses + missed(
		outcome{
			name: "choice of levels of 1,000,000 partitions", values: []float64{metric(made, "cpu-s/op")}, unit: "s", target: 2, atMost: true,
		},
		outcome{
			name: "memory beside the slabs at 8.4 million partitions, most", values: []float64{most}, unit: "MiB", target: 700, atMost: true,
			note: fmt.Sprintf("%.0f at the end, after %.0f batches/s through the mount", last, rate*seconds/took),
		},
	)
}

// choosingAtRate is what choosing levels takes in a node without a mount: choices, as it
// counts them, and what a use is worth, which takes so many seconds; and, of a
// profile, these with all that the cache does to know what to ask, and its heap.
// Neither counts if the rate was not reached.
func (b *bench) choosingAtRate(view string, rate, worth float64) (misses int) {
	const seconds = 100 // of the benchmark's
	program, profile := filepath.Join(b.dir, "node.test"), filepath.Join(b.dir, "node.profile")
	ran := output("go", "test", "-run", "^$", "-bench", "^BenchmarkChoosingAtRate$/"+view, "-benchtime", "1x",
		"-cpuprofile", profile, "-o", program, "./cmd/internal/views")
	chosen, reached := metric(ran, "choice-%"), metric(ran, "opens/s")
	top := output("go", "tool", "pprof", "-top", "-unit", "ms", "-focus", focus(choosing), program, profile)
	_, of, _ := strings.Cut(top, "accounting for ")
	spent, _, _ := strings.Cut(of, "ms")
	profiled, err := strconv.ParseFloat(spent, 64)
	check(err)
	counted, all := chosen+100*worth*rate, 100*profiled/1e3/seconds
	if reached < 0.999*rate {
		counted, all = math.Inf(1), math.Inf(1)
	}
	return missed(
		outcome{
			name: "share of a core that choosing levels takes at 10,000 batches/s, " + view, values: []float64{counted}, unit: "%", target: 2, atMost: true,
			note: fmt.Sprintf("%.2f %% choices, %.0f of them, and %.2f %% worth; %.0f batches/s", chosen, metric(ran, "choices"), 100*worth*rate, reached),
		},
		outcome{
			name: "the same, of a profile, with what the cache asks and its heap", values: []float64{all}, unit: "%", target: 2, atMost: true,
		},
	)
}

// A function is one of a package by its receiver and name, or all of a receiver if it has no name.
type function struct{ receiver, name string }

// Choosing are the functions of the cache by which levels are chosen, and what it does to know
// what to ask, and its heap.
var choosing = []function{{"choosing", "draft"}, {"eviction", "worthAt"}, {"eviction", "nextUse"}, {"heap", ""}}

// focus is the expression for functions of the cache in a profile.
func focus(all []function) string {
	var each []string
	for _, f := range all {
		one := regexp.QuoteMeta("cache.(*" + f.receiver + ")." + f.name)
		if f.name != "" {
			one += "$"
		}
		each = append(each, one)
	}
	return strings.Join(each, "|")
}

// openAll opens the first n batches of a rank, so many a second at most.
func openAll(rank string, n, rate int) error {
	begin := time.Now()
	for i := range n {
		if due := begin.Add(time.Duration(i) * time.Second / time.Duration(rate)); time.Until(due) > time.Millisecond {
			time.Sleep(time.Until(due))
		}
		f, err := os.Open(fmt.Sprintf("%s/batch-%06d", rank, i))
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
