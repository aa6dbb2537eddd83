package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A job that waits for its source, and the epochs that it has.
const (
	slowRecords = 192 // of a MiB
	slowRate    = 40 * mib
	slowRanks   = 2
	slowStep    = 30 * time.Millisecond
	slowEpochs  = 3
)

// forecasts compares what rankfs simulate says of epochs with epochs of ranks
// that read them from a source that sets the pace: in the source's order with a
// cache for a half and a quarter of the data, and shuffled, so that nothing is
// kept; and in order with memory for a quarter and room for the rest on a disk, or
// for half of the rest. It is told how fast the source was, and how long ranks
// worked: on a machine that has other things to do neither is what was asked for.
func forecasts(b *bench) (misses int) {
	source, dir := b.slow(slowRate, b.data("slow.bin", "fixed", "-n", fmt.Sprint(slowRecords), "-size", fmt.Sprint(mib)))
	path := filepath.Join(dir, "slow.bin")
	for _, c := range []struct{ order, ram, nvme string }{
		{"none", "96MiB", ""}, {"none", "48MiB", ""}, {"full", "96MiB", ""}, {"none", "48MiB", "8GiB"}, {"none", "48MiB", "72MiB"},
	} {
		options := []string{"--ram", c.ram}
		if c.nvme != "" {
			options = append(options, "--nvme", filepath.Join(b.dir, "nvme")+":"+c.nvme)
		}
		b.mount(options...)
		b.create("d", "file:"+path, "--as", fmt.Sprintf("fixed:%d", mib), "--batch", "1", "--ranks", fmt.Sprint(slowRanks), "--order", c.order)
		name := fmt.Sprintf("epochs predicted / measured, order=%s, ram for %s", c.order, c.ram)
		if c.nvme != "" {
			name += ", nvme for " + c.nvme
		}
		source.speed()
		first := b.lockstep(0, 1)
		said := b.predict(source.speed(), first.step)
		misses += missed(off(name+", first", said[0], first.seconds))
		later := b.lockstep(1, slowEpochs)
		said = b.predict(source.speed(), later.step)
		learnt := b.predict(0, later.step)
		misses += missed(
			off(name+", later", said[1]+said[2], later.seconds),
			off("the same, by the speed that the daemon has measured", learnt[1]+learnt[2], later.seconds),
		)
		b.reset()
	}
	return misses
}

// off is how far a prediction is off, to whichever side.
func off(name string, predicted, measured float64) outcome {
	ratio := predicted / measured
	return outcome{
		name: name, values: []float64{1 + math.Abs(ratio-1)}, target: 1.1, atMost: true,
		note: fmt.Sprintf("%.3f: %.2f s against %.2f", ratio, predicted, measured),
	}
}

// predict is the seconds that rankfs simulate predicts for each epoch. Without a speed
// it uses the rate of the source that the daemon has measured.
func (b *bench) predict(speed float64, step time.Duration) (seconds []float64) {
	var o struct {
		Policies []struct{ Epochs []struct{ Seconds float64 } }
	}
	args := []string{"simulate", "d", "--json", "--step", step.String(), "--epochs", fmt.Sprint(slowEpochs)}
	if speed > 0 {
		args = append(args, "--bandwidth", fmt.Sprintf("%.0fB", speed))
	}
	check(json.Unmarshal([]byte(b.rankfs(args...)), &o))
	for _, e := range o.Policies[0].Epochs {
		seconds = append(seconds, e.Seconds)
	}
	return seconds
}

// A stint is the time of some epochs, and that of a rank's work on a batch.
type stint struct {
	seconds float64
	step    time.Duration
}

// lockstep has ranks read epochs, each step together.
func (b *bench) lockstep(from, to int) (s stint) {
	var work [slowRanks]time.Duration
	s.seconds = seconds(func() {
		for epoch := from; epoch < to; epoch++ {
			for step := range slowRecords / slowRanks {
				b.step(epoch, step, work[:])
			}
		}
	})
	for _, w := range work {
		s.step += w / time.Duration((to-from)*slowRecords)
	}
	return s
}

// step has each rank read a batch, and adds how long it worked on that.
func (b *bench) step(epoch, step int, work []time.Duration) {
	var ranks sync.WaitGroup
	var errs [slowRanks]error
	for rank := range errs {
		ranks.Go(func() {
			took, err := consume(filepath.Join(b.mnt, "datasets", fmt.Sprintf("d@epoch=%d/rank-%d/batch-%06d", epoch, rank, step)))
			work[rank] += took
			errs[rank] = err
		})
	}
	ranks.Wait()
	check(errors.Join(errs[:]...))
}

// consume maps a batch, all of it, and works on it for a while.
func consume(batch string) (work time.Duration, err error) {
	f, err := os.Open(batch)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	start := time.Now()
	mem, err := unix.Mmap(int(f.Fd()), 0, mib, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return 0, err
	}
	time.Sleep(slowStep)
	return time.Since(start), unix.Munmap(mem)
}
