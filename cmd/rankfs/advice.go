package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

// quietShare is the share of waits below which nothing can be gained: an open of a
// ready batch costs as much.
const quietShare = 0.01

// A need follows from the figures of a job, for the ranks of one node.
//
//	share  = stalled / ranks' time
//	got    = bytes / ranks' time * ranks
//	wanted = bytes / (ranks' time - stalled) * ranks
//
// So wanted is what the ranks would use if they never waited and their own work
// took as long as it does. That is an estimate: they may be held up by one
// another, and then would use less.
type need struct {
	job    control.Job
	load   control.Load
	share  float64
	wanted float64 // bytes per second
}

// needOf is the need of a job.
func needOf(l control.Load, j control.Job) need {
	n := need{job: j, load: l, share: j.Total.Share()}
	if busy := j.Total.RankSeconds - j.Total.Stalled; busy > 0 {
		n.wanted = float64(j.Total.Bytes) / busy * float64(j.Here)
	}
	return n
}

// advise says what would remove the waits of a job.
func advise(l control.Load, j control.Job) string {
	n := needOf(l, j)
	switch {
	case j.TooLarge != "":
		return j.TooLarge
	case j.Total.RankSeconds == 0:
		return "nothing is known yet: no rank has opened two batches"
	case n.share < quietShare:
		return fmt.Sprintf("nothing: waits are %s of the ranks' time", part(n.share))
	}
	return map[string]func() string{
		"admission": n.admission, "overhead": n.overhead, "source": n.source,
		"peer": n.peer, "decode": n.decode, "nvme": n.disk,
	}[ranked(j.Total.Waits)[0].name]()
}

// A cause is one thing that opens waited for.
type cause struct {
	name, words string
	seconds     float64
}

// ranked are the causes, the worst first.
func ranked(w control.Waits) []cause {
	all := []cause{
		{"source", "what the source sends", w.Source},
		{"peer", "what other nodes send", w.Peer},
		{"decode", "unpacking, and copying in memory", w.Decode},
		{"nvme", "the disk of --nvme", w.Disk},
		{"overhead", "which rank reads what, and the daemon's own work", w.Overhead},
		{"admission", "a worker, or memory", w.Admission},
	}
	slices.SortStableFunc(all, func(a, b cause) int { return cmp.Compare(b.seconds, a.seconds) })
	return all
}

// source weighs what the source gives against what the ranks would use. Where
// it gives less, the missing part of each epoch has to come from elsewhere:
//
//	missing = 1 - given / wanted           of the epoch's bytes
//	memory  = missing * epoch * ranks here / all ranks, and the batches in use
//	nodes   = wanted / given               if the source gives each as much
//
// Given is measured while anything was under way from the source, so a slow
// source that was rarely asked is not taken for a slower one.
func (n need) source() string {
	if n.job.Facts == nil {
		return "the source is what was waited for; the dataset is gone, so there is no more to say"
	}
	if n.job.Total.Opens > 0 && n.job.Total.Opens <= 2*uint64(n.job.Here) {
		return "the source is what is waited for, by first batches, which cannot be ready before a job begins; ask again when more are read"
	}
	given := n.job.Facts.Source.Rate()
	if given == 0 {
		return "the source is what is waited for, but too little came from it to say how fast it is"
	}
	if given >= n.wanted {
		return fmt.Sprintf("the source gives %s, more than the %s that the ranks use, so the waits are of first batches and bursts; %s",
			speed(given), speed(n.wanted), n.room())
	}
	missing, nodes := 1-given/n.wanted, math.Ceil(n.wanted/given)
	text := fmt.Sprintf("the source gives %s, the ranks would use %s: ", speed(given), n.use())
	more := "; or another source: this one is far too slow"
	if nodes <= 64 {
		more = fmt.Sprintf("; or %.0f nodes, if the source gives each as much", nodes)
	}
	if !n.job.Facts.Again {
		return text + "memory does not help, as no epoch has the batches of another" + more
	}
	memory := min(missing*n.epoch()+n.inUse(), n.most())
	if memory <= float64(n.ram()) {
		return text + fmt.Sprintf("%s of the dataset in memory would do, and --ram %s has room for it: epochs after the first wait less, as long as nothing else needs the room",
			terminal.Percent(missing), meta.FormatBytes(uint64(n.ram()))) + more
	}
	return text + fmt.Sprintf("%s of the dataset in memory would do (--ram %s)", terminal.Percent(missing), ramFlag(memory)) + more
}

// admission is a lack of memory if workers waited longer for memory than for all
// that they made batches of; else of workers. Opens that find all workers waiting for
// memory wait for a worker, so their own waits do not tell.
func (n need) admission() string {
	if making := n.job.Total.Waits.Sum() - n.job.Total.Waits.Admission; n.job.Total.MemoryWait > making {
		return n.memory()
	}
	text := fmt.Sprintf("a free worker is what is waited for: %d batches are made at a time, for %s of all jobs here%s fewer ranks on this node, or more cores, each of which is a worker",
		n.load.Workers, terminal.Plural(max(n.load.Ranks, n.job.Here), "rank"), n.held())
	if n.ahead() > float64(n.ram()) {
		text += ", or --ram " + ramFlag(n.ahead()) + " to make more ready ahead"
	}
	return text
}

// memory weighs what ranks held and waited for against the memory of the node.
func (n need) memory() string {
	const less = "or fewer ranks on this node, or smaller batches"
	l := n.load.Lacked
	if l == nil || l.Enough <= n.ram() { // what was being made, and what no rank had, was in the way for a moment
		return "memory is what is waited for: more --ram than the " + terminal.Bytes(n.ram()) + " that there is, " + less
	}
	return fmt.Sprintf("memory is what is waited for: ranks hold or map %s, in %s, and wait for %s more, of %s: --ram %s has room for that, and for a batch of each rank; or close and unmap a batch before the next is opened, %s",
		terminal.Bytes(l.Held), terminal.Plural(l.Batches, "open file"), terminal.Bytes(l.Asked), terminal.Bytes(n.ram()), meta.FormatRoom(l.Enough), less)
}

// held adds that workers mostly wait for a source, if they do: it may be the source of
// another job.
func (n need) held() string {
	waiting := ratio(int64(n.load.Source.Held*1e6), int64(n.load.Counters.FillSeconds*1e6))
	if n.load.Counters.FillSeconds == 0 || waiting < 0.5 {
		return ";"
	}
	return fmt.Sprintf(", and %s of the time that this takes, a source is waited for: a faster source for those jobs that have a slow one,",
		terminal.Percent(min(1, waiting)))
}

func (n need) overhead() string {
	if n.job.Facts != nil && !n.job.Facts.Remote { // nothing is to be settled there
		return "the daemon's own work is what is waited for: larger batches make less of it, more cores do it sooner"
	}
	options := "@"
	if strings.Contains(n.job.View, "@") {
		options = ","
	}
	return fmt.Sprintf("at the first batches of an epoch it is not known yet where its ranks are, nor so which rank reads what; tell it before they start: rankfs plan %s%sepoch=N --hostfile FILE --settle",
		n.job.View, options)
}

func (n need) peer() string {
	given := n.load.Peers.Rate()
	if n.job.Facts != nil {
		given = n.job.Facts.Peers.Rate()
	}
	return fmt.Sprintf("other nodes send %s while they are asked, the ranks would use %s: a faster network, or ranks nearer to their bytes (see: rankfs plan %s), or more --ram on all nodes",
		speed(given), n.use(), n.job.View)
}

// decode is bound by processors: as many times those that there are as unpacking
// is too slow.
func (n need) decode() string {
	if n.job.Facts == nil {
		return "unpacking is what was waited for; the dataset is gone, so there is no more to say"
	}
	given := n.job.Facts.Decoded.Rate()
	if given == 0 { // what was packed in memory is of no source
		given = n.load.Decoded.Rate()
	}
	if given == 0 || given >= n.wanted {
		return "unpacking is what is waited for, though it is fast enough on the whole; " + n.room()
	}
	return fmt.Sprintf("unpacking gives %s, the ranks would use %s: %.1f times the cores would do, or --ram for what is unpacked already",
		speed(given), n.use(), n.wanted/given)
}

// disk advises where ranks wait for batches that left memory for the disk.
func (n need) disk() string {
	memory := min(n.inUse(), n.most())
	for _, t := range n.load.Tiers {
		memory += float64(t.Used - t.Copies)
	}
	return fmt.Sprintf("the disk of --nvme is what is waited for: with --ram %s nothing that is there now would have left memory", ramFlag(memory))
}

// ahead is memory for as many batches of each rank as are ever made ready, 16,
// and the one being read and the one just read.
func (n need) ahead() float64 {
	if n.job.Facts == nil {
		return 0
	}
	return min(float64(n.job.Here)*18*float64(n.job.Facts.Batch), n.most())
}

// most is more than what the ranks can use: a whole epoch, and a batch of the next for each.
func (n need) most() float64 {
	if n.job.Facts == nil {
		return 0
	}
	return float64(n.job.Facts.Bytes) + float64(n.job.Here)*float64(n.job.Facts.Batch)
}

// room reports whether there is memory for that.
func (n need) room() string {
	if n.ahead() > float64(n.ram()) {
		return fmt.Sprintf("--ram %s lets 16 batches be made ready ahead of each rank", ramFlag(n.ahead()))
	}
	return "memory is enough to make 16 batches ready ahead of each rank"
}

// epoch is the number of bytes of an epoch that are read on this node.
func (n need) epoch() float64 {
	v := n.job.Facts
	return float64(v.Bytes) * min(1, float64(n.job.Here)/float64(max(1, v.Ranks)))
}

// inUse is the memory that the ranks hold at once: each has a batch that it reads, one that
// it has just read, one that is ready and one that is filled.
func (n need) inUse() float64 {
	if n.job.Facts == nil {
		return 0
	}
	return float64(n.job.Here) * 4 * float64(n.job.Facts.Batch)
}

func (n need) ram() int64 {
	for _, t := range n.load.Tiers {
		if t.Name == "ram" {
			return t.Budget
		}
	}
	return 0
}

// use is the rate at which the ranks would read. Ranks that do little but wait would
// use all they get: the figure is then mostly an error of measurement.
func (n need) use() string {
	if n.share > 0.95 {
		return "all they can get, " + speed(n.wanted) + " or so"
	}
	return speed(n.wanted)
}

func speed(bytes float64) string { return terminal.Bytes(int64(min(bytes, math.MaxInt64/2))) + "/s" }

// ramFlag is a value of --ram that is at least this many bytes.
func ramFlag(bytes float64) string {
	unit := float64(16 << 20)
	switch {
	case bytes >= 8<<30:
		unit = 1 << 30
	case bytes >= 1<<30:
		unit = 128 << 20
	}
	return meta.FormatBytes(uint64(math.Ceil(min(bytes, math.MaxInt64/2)/unit) * unit))
}

// part writes a share of which something is there, however little.
func part(share float64) string {
	if share > 0 && share < 0.001 {
		return "<0.1%"
	}
	return terminal.Percent(share)
}
