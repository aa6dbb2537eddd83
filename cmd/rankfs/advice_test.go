package main

import (
	"testing"

	"rankfs/cmd/internal/control"
)

// What is advised, by what is waited for. Four of eight ranks, of 100 s each,
// have read 40 GiB together and waited for half of the time: without that they
// would use 800 MiB/s, near enough 819.
func TestAdvice(t *testing.T) {
	const gib = 1 << 30
	type figures struct {
		waits  control.Waits
		ram    int64
		source control.Flow
		held   float64 // of 40 s of filling
		change func(*control.Job)
	}
	slow, fast := control.Flow{Bytes: 40 * gib, Busy: 80}, control.Flow{Bytes: 90 * gib, Busy: 80}
	for name, c := range map[string]struct {
		figures
		want string
	}{
		"quiet": {figures{change: func(j *control.Job) { j.Total.Stalled = 0.5 }},
			"nothing: waits are 0.1% of the ranks' time"},
		"new": {figures{change: func(j *control.Job) { j.Total.RankSeconds = 0 }},
			"nothing is known yet: no rank has opened two batches"},
		"slow source": {figures{waits: control.Waits{Source: 200}, ram: gib, source: slow},
			"the source gives 512 MiB/s, the ranks would use 819 MiB/s: 37.5% of the dataset in memory would do (--ram 19GiB); or 2 nodes, if the source gives each as much"},
		"slow source, memory": {figures{waits: control.Waits{Source: 200}, ram: 64 * gib, source: slow},
			"the source gives 512 MiB/s, the ranks would use 819 MiB/s: 37.5% of the dataset in memory would do, and --ram 64GiB has room for it: epochs after the first wait less, as long as nothing else needs the room; or 2 nodes, if the source gives each as much"},
		"slow source, shuffled": {figures{waits: control.Waits{Source: 200}, ram: gib, source: slow, change: func(j *control.Job) { j.Facts.Again = false }},
			"the source gives 512 MiB/s, the ranks would use 819 MiB/s: memory does not help, as no epoch has the batches of another; or 2 nodes, if the source gives each as much"},
		"a source that crawls": {figures{waits: control.Waits{Source: 200}, ram: gib, source: control.Flow{Bytes: 1 << 20, Busy: 80}},
			"the source gives 13 KiB/s, the ranks would use 819 MiB/s: 99.9% of the dataset in memory would do (--ram 51GiB); or another source: this one is far too slow"},
		"bursts": {figures{waits: control.Waits{Source: 200}, ram: gib / 4, source: fast},
			"the source gives 1.1 GiB/s, more than the 819 MiB/s that the ranks use, so the waits are of first batches and bursts; --ram 576MiB lets 16 batches be made ready ahead of each rank"},
		"first batches": {figures{waits: control.Waits{Source: 200}, ram: gib, source: slow, change: func(j *control.Job) { j.Total.Opens = 8 }},
			"the source is what is waited for, by first batches, which cannot be ready before a job begins; ask again when more are read"},
		"source unseen": {figures{waits: control.Waits{Source: 200}},
			"the source is what is waited for, but too little came from it to say how fast it is"},
		"memory": {figures{waits: control.Waits{Admission: 200}, ram: 64 << 20, change: func(j *control.Job) { j.Total.MemoryWait = 80 }},
			"memory is what is waited for: ranks hold or map 60 MiB, in 7 open files, and wait for 40 MiB more, of 64 MiB: --ram 100MiB has room for that, and for a batch of each rank; or close and unmap a batch before the next is opened, or fewer ranks on this node, or smaller batches"},
		"memory, for a moment": {figures{waits: control.Waits{Admission: 200}, ram: 128 << 20, change: func(j *control.Job) { j.Total.MemoryWait = 80 }},
			"memory is what is waited for: more --ram than the 128 MiB that there is, or fewer ranks on this node, or smaller batches"},
		"workers that rarely lack memory": {figures{waits: control.Waits{Admission: 200, Decode: 81}, ram: gib, change: func(j *control.Job) { j.Total.MemoryWait = 80 }},
			"a free worker is what is waited for: 2 batches are made at a time, for 7 ranks of all jobs here; fewer ranks on this node, or more cores, each of which is a worker"},
		"workers, however little memory": {figures{waits: control.Waits{Admission: 200}, ram: 64 << 20},
			"a free worker is what is waited for: 2 batches are made at a time, for 7 ranks of all jobs here; fewer ranks on this node, or more cores, each of which is a worker, or --ram 576MiB to make more ready ahead"},
		"workers": {figures{waits: control.Waits{Admission: 200}, ram: gib},
			"a free worker is what is waited for: 2 batches are made at a time, for 7 ranks of all jobs here; fewer ranks on this node, or more cores, each of which is a worker"},
		"workers that wait": {figures{waits: control.Waits{Admission: 200}, ram: gib, held: 30},
			"a free worker is what is waited for: 2 batches are made at a time, for 7 ranks of all jobs here, and 75.0% of the time that this takes, a source is waited for: a faster source for those jobs that have a slow one, fewer ranks on this node, or more cores, each of which is a worker"},
		"workers, little memory": {figures{waits: control.Waits{Admission: 200}, ram: gib / 4},
			"a free worker is what is waited for: 2 batches are made at a time, for 7 ranks of all jobs here; fewer ranks on this node, or more cores, each of which is a worker, or --ram 576MiB to make more ready ahead"},
		"workers, little memory, a small dataset": {figures{waits: control.Waits{Admission: 200}, ram: gib / 4, change: func(j *control.Job) { j.Facts.Bytes = 256 << 20 }},
			"a free worker is what is waited for: 2 batches are made at a time, for 7 ranks of all jobs here; fewer ranks on this node, or more cores, each of which is a worker, or --ram 288MiB to make more ready ahead"},
		"slow source, a small dataset": {figures{waits: control.Waits{Source: 200}, ram: 16 << 20, source: control.Flow{Bytes: 1 << 30, Busy: 80}, change: func(j *control.Job) { j.Facts.Bytes = 16 << 20 }},
			"the source gives 13 MiB/s, the ranks would use 819 MiB/s: 98.4% of the dataset in memory would do (--ram 48MiB); or 64 nodes, if the source gives each as much"},
		"overhead": {figures{waits: control.Waits{Overhead: 200}},
			"at the first batches of an epoch it is not known yet where its ranks are, nor so which rank reads what; tell it before they start: rankfs plan train@epoch=N --hostfile FILE --settle"},
		"overhead of a view": {figures{waits: control.Waits{Overhead: 200}, change: func(j *control.Job) { j.View = "train@order=full" }},
			"at the first batches of an epoch it is not known yet where its ranks are, nor so which rank reads what; tell it before they start: rankfs plan train@order=full,epoch=N --hostfile FILE --settle"},
		"own work": {figures{waits: control.Waits{Overhead: 200}, change: func(j *control.Job) { j.Facts.Remote = false }},
			"the daemon's own work is what is waited for: larger batches make less of it, more cores do it sooner"},
		"peers": {figures{waits: control.Waits{Peer: 200}},
			"other nodes send 10 MiB/s while they are asked, the ranks would use 819 MiB/s: a faster network, or ranks nearer to their bytes (see: rankfs plan train), or more --ram on all nodes"},
		"decode": {figures{waits: control.Waits{Decode: 200}},
			"unpacking gives 205 MiB/s, the ranks would use 819 MiB/s: 4.0 times the cores would do, or --ram for what is unpacked already"},
		"disk": {figures{waits: control.Waits{Disk: 200}},
			"the disk of --nvme is what is waited for: with --ram 12GiB nothing that is there now would have left memory"},
		"all waiting": {figures{waits: control.Waits{Peer: 396}, change: func(j *control.Job) { j.Total.Stalled = 399 }},
			"other nodes send 10 MiB/s while they are asked, the ranks would use all they can get, 160 GiB/s or so: a faster network, or ranks nearer to their bytes (see: rankfs plan train), or more --ram on all nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			j := control.Job{
				ViewName: viewNamed("train"), Here: 4, Facts: &control.Facts{Ranks: 8, Bytes: 100 * gib, Batch: 8 << 20, Again: true, Remote: true, Flows: control.Flows{
					Source: c.source, Peers: control.Flow{Bytes: 100 << 20, Busy: 10}, Decoded: control.Flow{Bytes: 2 * gib, Busy: 10},
				}},
				Total: control.Account{OpenCounts: control.OpenCounts{Opens: 5000, Bytes: 40 * gib}, RankSeconds: 400, Stalled: 200, Waits: c.waits},
			}
			if c.change != nil {
				c.change(&j)
			}
			l := control.Load{
				Workers: 2, Ranks: 7, Lacked: &control.Lack{Batches: 7, Held: 60 << 20, Asked: 40 << 20, Enough: 100 << 20}, Flows: control.Flows{Source: control.Flow{Held: c.held}}, Counters: control.Counters{FillSeconds: 40},
				Tiers: []control.Tier{{Name: "ram", Budget: c.ram, Used: gib}, {Name: "nvme", Used: 12 * gib, Copies: 2 * gib}},
			}
			if got := advise(l, j); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			j.Facts, j.Here = nil, 0 // the dataset is gone: less is known, and nothing breaks
			if advise(l, j) == "" || advise(control.Load{}, j) == "" {
				t.Error("nothing to say")
			}
		})
	}
}
