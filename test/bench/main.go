// Bench measures rankfs against what a rank would do without it, side by side
// in one run: the two sides of a measure take turns, and what counts is the
// median of the ratios of neighbouring turns.
//
//	make bench                       all measures
//	make bench BENCH=-list           their names
//	make bench BENCH='-only ls'      those whose name contains ls
//
// Each measure prints one line: its name, the ratio with the range from the
// lowest to the highest pair, the target, and pass or miss. It ends with 1 if one
// missed. Nothing else should run on the machine meanwhile; bench says so if
// something does. Those of the cluster (-only cluster) run daemons on the hosts of
// test/cluster.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A measure compares two sides. Its sides return figures in the same unit; the
// ratio is ours over theirs.
type measure struct {
	name   string
	target float64
	atMost bool // the ratio must not be above target, rather than not below
	setup  func(*bench) (ours, theirs func() float64)
}

var (
	only  = flag.String("only", "", "run the measures whose name contains this")
	names = flag.Bool("list", false, "print the names of the measures, and take none")
	turns = flag.Int("n", 7, "pairs of turns of each measure")
	small = flag.Int("small", 1, "divide the bytes of rows of records by this, to try them: targets are for 1")
	dir   = flag.String("dir", "/var/tmp", "directory on a disk for data and mounts")
)

// fewest are the pairs of which a median says something.
const fewest = 7

func main() {
	flag.Parse()
	if *turns < fewest {
		fmt.Fprintf(os.Stderr, "bench: -n %d: take %d pairs of turns or more\n", *turns, fewest)
		os.Exit(2)
	}
	if *small < 1 {
		fmt.Fprintf(os.Stderr, "bench: -small %d: take 1 or more\n", *small)
		os.Exit(2)
	}
	some, err := chosen(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if *names {
		for _, r := range some {
			fmt.Println(r.name)
		}
		return
	}
	os.Exit(run(some))
}

// A row is a measure, or a group of them, that -only picks by its name: it prints a line
// for each, and returns how many missed their targets.
type row struct {
	name string
	run  func(*bench) (misses int)
}

func rows() (all []row) {
	for _, m := range measures {
		all = append(all, row{m.name, func(b *bench) int { return missed(m.take(b)) }})
	}
	for _, f := range figures {
		all = append(all, row{f.name, func(b *bench) int { return missed(f.take(b)) }})
	}
	for _, s := range studies {
		all = append(all, row(s))
	}
	return all
}

// chosen are the rows whose name contains a word. If there is none, that is an
// error: a bench that measures nothing misses nothing.
func chosen(word string) (some []row, err error) {
	for _, r := range rows() {
		if strings.Contains(r.name, word) {
			some = append(some, r)
		}
	}
	if some == nil {
		return nil, fmt.Errorf("no measure has %q in its name: see -list", word)
	}
	return some, nil
}

func run(some []row) int {
	b, err := newBench(*dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	defer b.close()
	b.closeOnSignal()
	defer func() {
		switch f := recover().(type) {
		case nil:
			return
		case failure:
			b.close()
			fmt.Fprintln(os.Stderr, "bench:", f.error)
			os.Exit(1)
		default:
			b.close()
			panic(f)
		}
	}()
	warnIfBusy()
	if *small > 1 {
		fmt.Printf("note: rows of records have 1/%d of the bytes that their targets are for\n", *small)
	}
	return measureAll(b, some)
}

// measureAll takes all measures, whatever comes of one, and returns what bench ends
// with.
func measureAll(b *bench, some []row) (code int) {
	misses := 0
	for _, r := range some {
		misses += r.run(b)
		b.reset()
	}
	fmt.Printf("%d missed\n", misses)
	if misses > 0 {
		return 1
	}
	return 0
}

// take takes the turns of both sides.
func (m measure) take(b *bench) outcome {
	ours, theirs := m.setup(b)
	ours()
	theirs() // a first turn of each is not counted
	var ratios, left, right []float64
	for range *turns {
		o, t := ours(), theirs()
		left, right, ratios = append(left, o), append(right, t), append(ratios, o/t)
	}
	return outcome{
		name: m.name, values: ratios, target: m.target, atMost: m.atMost,
		note: fmt.Sprintf("%.4g against %.4g", middle(left), middle(right)),
	}
}

// A figure is a measure with one side.
type figure struct {
	name   string
	unit   string
	atMost float64
	get    func(*bench) float64
}

func (f figure) take(b *bench) outcome {
	return outcome{name: f.name, values: []float64{f.get(b)}, unit: f.unit, target: f.atMost, atMost: true}
}

// A study reports several measures that one setup gives, and says how many
// missed their targets.
type study struct {
	name string
	run  func(*bench) (misses int)
}

// An outcome is the measured values, to be compared with a target.
type outcome struct {
	name   string
	values []float64
	unit   string
	target float64
	atMost bool
	note   string
}

// report prints the median, with the range if there are several.
func (o outcome) report() (pass bool) {
	median, spread, sign, note := middle(o.values), "", ">=", ""
	pass = median >= o.target
	if o.atMost {
		pass, sign = median <= o.target, "<="
	}
	if len(o.values) > 1 {
		spread = fmt.Sprintf("(%.3g-%.3g)", slices.Min(o.values), slices.Max(o.values))
	}
	if o.note != "" {
		note = "  [" + o.note + "]"
	}
	fmt.Printf("%-66s %7.4g %-3s %-14s target %s %-5v %s%s\n", o.name, median, o.unit, spread, sign, o.target, verdict(pass), note)
	return pass
}

// missed reports outcomes and counts those that missed.
func missed(all ...outcome) (misses int) {
	for _, o := range all {
		if !o.report() {
			misses++
		}
	}
	return misses
}

func verdict(pass bool) string {
	if pass {
		return "pass"
	}
	return "MISS"
}

func middle(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}

func warnIfBusy() {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return
	}
	if load, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64); err == nil && load > 0.5 {
		fmt.Printf("note: the load of this machine was %.1f when this began; ratios will be rough\n", load)
	}
}
