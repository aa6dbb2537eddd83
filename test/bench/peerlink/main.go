// Peerlink measures how much of a wire the records of another node get: two
// nodes on networks of their own, joined by a link of 1 Gbit/s, against iperf3
// over the same link. The two take turns, and what counts is the median of the
// ratios of neighbouring turns.
//
//	go run ./test/bench/peerlink            as root; iperf3, iproute2, util-linux
//
// Ours is encrypted and checked and goes to where the records belong in a
// batch; iperf3 sends zeros in the clear. The networks go with the processes
// that hold them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

var (
	role    = flag.String("role", "", "what this process is; not for people")
	turns   = flag.Int("n", 7, "pairs of turns")
	rate    = flag.String("rate", "1gbit", "of the link, as tc has it")
	streams = flag.Int("streams", 1, "batches, or streams of iperf3, at a time")
	record  = flag.Int("record", 110<<10, "bytes of a record")
)

const target = 0.95

func main() {
	flag.Parse()
	ends := map[string]func() error{"": compare, "serve": serve, "ask": ask}
	if err := ends[*role](); err != nil {
		fmt.Fprintf(os.Stderr, "peerlink: %v\n", err)
		os.Exit(1)
	}
}

func compare() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	there, err := start(ctx, "serve")
	if err != nil {
		return err
	}
	defer there.end()
	here, err := start(ctx, "ask")
	if err != nil {
		return err
	}
	defer here.end()
	if err := join(ctx, there, here); err != nil {
		return err
	}
	if _, err := there.order("listen"); err != nil {
		return err
	}
	server := there.command(ctx, "iperf3", "-s", "-B", thereIP)
	// Or it would outlive a killed benchmark, and hold its network.
	runtime.LockOSThread()
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		return err
	}
	defer server.Wait()
	defer server.Process.Kill()
	return take(ctx, there, here)
}

// take lets the sides take turns and prints what came of it.
func take(ctx context.Context, there, here *end) error {
	var ours, theirs, ratios, costs []float64
	for i := range *turns + 1 {
		before := there.processor() + here.processor()
		answer, err := here.order("go")
		if err != nil {
			return err
		}
		o, err := strconv.ParseFloat(answer, 64)
		if err != nil {
			return err
		}
		cost := (there.processor() + here.processor() - before) * (1 << 30) / total
		t, err := iperf(ctx, here)
		if err != nil {
			return err
		}
		if i == 0 {
			continue // connections are made, memory is touched
		}
		ours, theirs, ratios, costs = append(ours, o), append(theirs, t), append(ratios, o/t), append(costs, cost)
	}
	verdict := "pass"
	if middle(ratios) < target {
		verdict = "MISS"
	}
	name := fmt.Sprintf("records of %d KiB over %s, TLS, %d at a time / iperf3", *record>>10, *rate, *streams)
	fmt.Printf("%-66s %7.4g     (%.3g-%.3g)  target >= %v %-5s  [%.1f against %.1f MB/s; %.2f s of processor time for a GiB, both sides]\n",
		name, middle(ratios), slices.Min(ratios), slices.Max(ratios), target, verdict, middle(ours)/1e6, middle(theirs)/1e6, middle(costs))
	return nil
}

func middle(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}

// iperf returns the bytes per second that iperf3 brings from there to here.
func iperf(ctx context.Context, here *end) (float64, error) {
	cmd := here.command(ctx, "iperf3", "-c", thereIP, "-R", "-n", strconv.Itoa(total), "-P", strconv.Itoa(*streams), "-J")
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return received(out)
}

// run runs a program and says what it said if it fails.
func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, strings.TrimSpace(string(out)))
	}
	return nil
}
