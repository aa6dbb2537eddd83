package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A learner is a program of test/mpi/learn.c, and the sets that it goes through
// in every epoch; those that it reads once come first.
type learner struct {
	name       string
	once, sets []string
}

// Sets are records of 256 bytes; train and test are together as large as all is.
const (
	learnRecord = 256
	learnBytes  = 64 * mib
	learnBatch  = 512
	learnEpochs = 6
	learnRate   = 96 * mib
)

func (l learner) all() []string { return slices.Concat(l.once, l.sets) }

func learnRecords(set string) int {
	switch {
	case set == "all":
		return learnBytes / learnRecord
	case strings.HasSuffix(set, "train"):
		return learnBytes / learnRecord * 3 / 4
	}
	return learnBytes / learnRecord / 4
}

// Neutrino's three scenarios: more memory than the data take, as much, and as much
// as they take packed, a fifth, with a tenth for batches that are being read.
var memories = []struct {
	name  string
	bytes int64
}{
	{"memory for 1.5 of the data", learnBytes * 3 / 2},
	{"memory for the data", learnBytes},
	{"memory for the packed data", learnBytes * 3 / 10},
}

// An arm is a policy with the means that it has: a disk for half of the data, or
// none. All-ram is lru: they are the same planner.
type arm struct {
	policy string
	disk   bool
}

var (
	withoutDisk = []arm{{"mckp", false}, {"dp25", false}, {"lru", false}, {"all-packed", false}}
	withDisk    = []arm{{"mckp", true}, {"all-disk", true}}
)

// A lesson is the result of a job.
type lesson struct{ seconds, first, later, fills float64 }

// measure runs the program's job under one policy after the other, a new daemon for
// each, over a source that sets the pace, and compares mckp with each of those that
// had the same means: without a disk, with one.
func (l learner) measure(b *bench) (misses int) {
	var files []string
	for i, set := range l.all() {
		files = append(files, b.data(set, "points", "-n", fmt.Sprint(learnRecords(set)), "-seed", fmt.Sprint(i)))
	}
	_, source := b.slow(learnRate, files...)
	want := l.run(b, 1, func(set string) string { return filepath.Join(b.dir, set) })
	for _, m := range memories {
		came := make(map[arm][]lesson)
		for range *turns {
			for _, a := range slices.Concat(withoutDisk, withDisk) {
				came[a] = append(came[a], l.job(b, source, m.bytes, a, want))
			}
		}
		misses += missed(l.against(m.name+", no disk", came, withoutDisk), l.against(m.name+", disk for half", came, withDisk))
	}
	return misses
}

// job runs the program on a new mount, and holds its result against the right one.
func (l learner) job(b *bench, source string, ram int64, a arm, want string) (o lesson) {
	options := []string{"--ram", fmt.Sprintf("%dB", ram), "--cache-policy", a.policy}
	if a.disk {
		options = append(options, "--nvme", fmt.Sprintf("%s:%dB", filepath.Join(b.dir, "nvme"), learnBytes/2))
	}
	b.mount(options...)
	for _, set := range l.all() {
		b.create(set, "file:"+filepath.Join(source, set), "--as", fmt.Sprintf("fixed:%d", learnRecord), "--ranks", "2", "--batch", fmt.Sprint(learnBatch))
	}
	out := l.run(b, 2, func(set string) string { return filepath.Join(b.mnt, "datasets", set) })
	for _, key := range []string{"result", "sum"} {
		if got := word(out, key); got != word(want, key) {
			check(fmt.Errorf("%s under %s: %swant %s", l.name, a.policy, out, want))
		}
	}
	o = lesson{value(out, "seconds"), value(out, "first"), value(out, "later"), float64(b.status().Counters.Fills)}
	b.reset()
	return o
}

func (l learner) run(b *bench, ranks int, path func(set string) string) string {
	args := []string{fmt.Sprint(ranks), filepath.Join(b.root, "test/mpi/bin/learn"), "-e", fmt.Sprint(learnEpochs), l.name}
	for _, set := range l.all() {
		args = append(args, path(set))
	}
	return output(filepath.Join(b.root, "test/mpi/run"), args...)
}

// against compares the first arm with the best of the others.
func (l learner) against(means string, came map[arm][]lesson, arms []arm) (o outcome) {
	o = outcome{name: fmt.Sprintf("%s, %s, mckp / best of the others", l.name, means), target: 1.05, atMost: true}
	best := arms[1]
	var notes []string
	for _, a := range arms {
		if of(came[a], lesson.total) < of(came[best], lesson.total) && a != arms[0] {
			best = a
		}
		notes = append(notes, fmt.Sprintf("%s %.2f + %d x %.3f s, %.0f fills", a.policy, of(came[a], lesson.begin), learnEpochs-1,
			of(came[a], lesson.epoch), of(came[a], lesson.filled)))
	}
	for i, own := range came[arms[0]] {
		o.values = append(o.values, own.seconds/came[best][i].seconds)
	}
	o.note = "best: " + best.policy + "; " + strings.Join(notes, "; ")
	return o
}

func (o lesson) total() float64  { return o.seconds }
func (o lesson) begin() float64  { return o.first }
func (o lesson) epoch() float64  { return o.later }
func (o lesson) filled() float64 { return o.fills }

// of is the median of a figure.
func of(all []lesson, figure func(lesson) float64) float64 {
	var v []float64
	for _, o := range all {
		v = append(v, figure(o))
	}
	return middle(v)
}
