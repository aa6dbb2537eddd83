package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// planning has epochs of chunks divided, each in a process of its own, whose
// memory counts.
func planning(b *bench) (misses int) {
	program := filepath.Join(b.dir, "division")
	output("go", "build", "-o", program, "./test/bench/division")
	for _, size := range []struct {
		chunks, nodes, racks int
		seconds              float64
	}{{16_384, 128, 8, 0.05}, {1_000_000, 1000, 40, 5}} {
		what := fmt.Sprintf("plan of %d chunks on %d nodes", size.chunks, size.nodes)
		took, memory := outcome{name: what, unit: "s", target: size.seconds, atMost: true},
			outcome{name: "memory of the same, at most", unit: "MiB", target: 1024, atMost: true}
		for range *turns {
			out := output(program, fmt.Sprint(size.chunks), fmt.Sprint(size.nodes), fmt.Sprint(size.racks))
			took.values = append(took.values, value(out, "seconds"))
			memory.values = append(memory.values, value(out, "MiB"))
			took.note = fmt.Sprintf("%.4f of the chunks are local", value(out, "local"))
		}
		misses += missed(took, memory)
	}
	return misses
}

// petabytePlan has an epoch of 8,388,608 chunks divided by shuffle/plan, for
// ranks on few hosts and on all.
func petabytePlan(b *bench) (misses int) {
	for _, hosts := range []string{"4", "1000"} {
		out := output("go", "test", "-run", "^$", "-bench", "Petabyte/hosts="+hosts+"/order=full", "-benchtime", "1x", "./shuffle/plan")
		what := "plan of 8,388,608 chunks on 1,000 hosts, ranks on " + hosts
		misses += missed(
			outcome{
				name: what + ", processor time to the first batch", values: []float64{metric(out, "first-stretch-cpu-s")}, unit: "s", target: 5, atMost: true,
				note: fmt.Sprintf("%.1f s for all of the epoch, %.1f s for the owners of chunks", metric(out, "epoch-cpu-s"), metric(out, "owners-cpu-s")),
			},
			outcome{name: "memory of the same without file pages, at most", values: []float64{metric(out, "all-MiB")}, unit: "MiB", target: 700, atMost: true},
		)
	}
	return misses
}

// metric is the figure in some unit in the output of a Go benchmark.
func metric(text, unit string) float64 {
	fields := strings.Fields(text)
	at := slices.Index(fields, unit)
	if at < 1 {
		check(fmt.Errorf("no %s in %q", unit, text))
	}
	v, err := strconv.ParseFloat(fields[at-1], 64)
	check(err)
	return v
}

// wireShare is a program of its own: it needs networks of its own. It holds its
// row against the target itself.
func wireShare(b *bench) (misses int) {
	for _, batches := range []string{"1", "4"} {
		cmd := exec.Command("go", "run", "./test/bench/peerlink", "-n", fmt.Sprint(*turns), "-streams", batches)
		cmd.Dir, cmd.Stderr = b.root, os.Stderr
		out, err := cmd.Output()
		check(err)
		os.Stdout.Write(out)
		misses += bytes.Count(out, []byte("MISS"))
	}
	return misses
}

// queuePolicies takes what the simulation of queues says of its two policies, on
// the mean of its seeds.
func queuePolicies(b *bench) (misses int) {
	out := output("go", "test", "-count", "1", "-v", "-run", "TestMakespan/.*drifting", "./meta/queue")
	for _, nodes := range []string{"32", "128"} {
		_, rest, ok := strings.Cut(out, "TestMakespan/"+nodes+"_drifting\n")
		_, rest, found := strings.Cut(rest, "probability ")
		var probability, flow, pLocal, fLocal float64
		_, err := fmt.Sscanf(rest, "%f of ideal, %f%% local; flow %f, %f%%", &probability, &pLocal, &flow, &fLocal)
		if !ok || !found {
			err = fmt.Errorf("the simulation says: %s", out)
		}
		check(err)
		misses += missed(outcome{
			name: "queue, makespan of flow / probability, " + nodes + " nodes that drift", values: []float64{flow / probability}, target: 1, atMost: true,
			note: fmt.Sprintf("%.3f of ideal, %.1f%% local, against %.3f, %.1f%%", flow, fLocal, probability, pLocal),
		})
	}
	return misses
}
