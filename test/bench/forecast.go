package main

import (
	"context"
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

// linkForecasts compares what rankfs simulate says of an epoch on four nodes with one
// of ranks that have fixed shares of each step, with nothing in the caches and links so
// slow that they set the pace. It is told how much a link carries, as iperf3 measures
// it: the daemons encrypt and check besides.
func linkForecasts(b *bench) (misses int) {
	const rate, step = 10e6, time.Millisecond
	s := b.site("512MiB", siteRecord)
	for _, h := range s.hosts {
		check(h.LinkRate(rate))
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	server := s.hosts[0].Command(ctx, "iperf3", "-s")
	check(server.Start())
	defer server.Wait()
	defer stop()
	out, err := s.hosts[1].Command(ctx, "iperf3", "-c", s.hosts[0].Name, "-R", "-n", "32M", "-P", "4", "-J").Output()
	check(err)
	link := iperfSpeed(out)
	view := fmt.Sprintf("d@epoch=%d,assign=strict", uint64(math.MaxUint64))
	said := predicted(s.Nodes[0].Do("--json", "simulate", view, "--epochs", "1", "--step", step.String(), "--bandwidth", "1GiB", "--link", fmt.Sprintf("%.0fB", link)))[0]
	var took, came []float64
	for range *turns {
		s.Restart()
		took = append(took, s.epoch(b, view))
		came = append(came, s.fromPeers())
	}
	for _, h := range s.hosts {
		check(h.LinkRate(0))
	}
	peers := off("cluster, MB from other nodes in an epoch with fixed shares, predicted / received", float64(said.Peers)/1e6, middle(came)/1e6)
	peers.target = 1.02
	return missed(peers, off(fmt.Sprintf("the same, seconds with links of %.0f MB/s, predicted / measured", link/1e6), said.Seconds, middle(took)))
}

// fromPeers is the bytes of records that nodes have had from others.
func (s *site) fromPeers() (bytes float64) {
	for _, n := range s.Nodes {
		var said struct {
			Peers struct{ Received struct{ Records float64 } }
		}
		n.Status(&said)
		bytes += said.Peers.Received.Records * siteRecord
	}
	return bytes
}

// off is how far a prediction is off, to whichever side.
func off(name string, predicted, measured float64) outcome {
	ratio := predicted / measured
	return outcome{
		name: name, values: []float64{1 + math.Abs(ratio-1)}, target: 1.1, atMost: true,
		note: fmt.Sprintf("%.3f: %.2f against %.2f", ratio, predicted, measured),
	}
}

// predict is the seconds that rankfs simulate predicts for each epoch. Without a speed
// it uses the rate of the source that the daemon has measured.
func (b *bench) predict(speed float64, step time.Duration) (seconds []float64) {
	args := []string{"simulate", "d", "--json", "--step", step.String(), "--epochs", fmt.Sprint(slowEpochs)}
	if speed > 0 {
		args = append(args, "--bandwidth", fmt.Sprintf("%.0fB", speed))
	}
	for _, e := range predicted(b.rankfs(args...)) {
		seconds = append(seconds, e.Seconds)
	}
	return seconds
}

// A prediction is what rankfs simulate says of an epoch.
type prediction struct {
	Seconds float64
	Peers   int64 `json:"peer_bytes"`
}

func predicted(text string) []prediction {
	var o struct {
		Policies []struct{ Epochs []prediction }
	}
	check(json.Unmarshal([]byte(text), &o))
	return o.Policies[0].Epochs
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
