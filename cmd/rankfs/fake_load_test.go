package main

import (
	"strings"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// account is one of a job whose ranks wait for a share of their time, nine
// tenths of it for one cause.
func account(seconds, share float64, for_ string, opens uint64, batch int64) control.Account {
	a := control.Account{OpenCounts: control.OpenCounts{Opens: opens, Ready: opens - opens/4, Waited: opens / 4, Bytes: int64(opens) * batch}, RankSeconds: seconds, Stalled: seconds * share}
	for name, part := range map[string]*float64{
		"source": &a.Waits.Source, "peer": &a.Waits.Peer, "nvme": &a.Waits.Disk,
		"decode": &a.Waits.Decode, "admission": &a.Waits.Admission,
	} {
		if name == for_ {
			*part = a.Stalled * 0.9
		}
	}
	a.Waits.Overhead = a.Stalled - a.Waits.Sum()
	a.HDFSWaits = control.Ways[float64]{Files: a.Waits.Source / 9, LocalTCP: a.Waits.Source / 3, Remote: a.Waits.Source * 5 / 9}
	return a
}

// Load is that of four ranks of each dataset, which wait for what its name says:
// source, admission, disk ... Those of the one that is called quiet wait for nothing, and
// those of silent have ended. Each second, as the fake counts them by how often it was
// asked, 20 batches are filled.
func (n *fakeNode) Load(r control.LoadRequest) (control.Load, error) {
	name, options, isView := meta.SplitView(r.Name)
	if r.Name != "" {
		if _, err := n.find(name); err != nil {
			return control.Load{}, err
		}
	}
	n.mu.Lock()
	n.mu.loads++
	at := n.mu.loads
	n.mu.Unlock()
	s := n.Status()
	l := control.Load{
		Time: epoch.Add(2*time.Hour + time.Duration(at)*time.Second), Mount: "/mnt", Host: "node-a", Nodes: 1, Since: epoch,
		Workers: 2, Jobs: []control.Job{}, Flows: fakeFlows(float64(at)), Tiers: s.Tiers, Pool: s.Pool, Counters: s.Counters,
	}
	l.Counters.Opens, l.Counters.OpensReady = l.Counters.Opens+uint64(40*at), l.Counters.OpensReady+uint64(30*at)
	l.Counters.Fills, l.Counters.FillBytes = l.Counters.Fills+uint64(20*at), l.Counters.FillBytes+uint64(at*20<<23)
	l.Counters.Prefetched, l.Counters.Evicted = l.Counters.Prefetched+uint64(15*at), l.Counters.Evicted+uint64(20*at)
	l.Counters.Restored += uint64(5 * at)
	for _, d := range n.Datasets() {
		if r.Name != "" && d.Name != name {
			continue
		}
		j := fakeJob(d.Name, r.Ranks)
		if isView {
			j.ViewName = viewNamed(name + "@" + options)
		}
		if !strings.HasPrefix(d.Name, "unread") {
			l.Jobs = append(l.Jobs, j)
		}
	}
	return l, nil
}

// fakeFlows are those of so many seconds.
func fakeFlows(seconds float64) (f control.Flows) {
	f.Source = control.Flow{Bytes: int64(seconds * (900 << 20)), Busy: seconds, Under: 2}
	f.HDFS.Files = control.Flow{Bytes: int64(seconds * (600 << 20)), Busy: seconds / 2}
	f.HDFS.Remote = control.Flow{Bytes: int64(seconds * (300 << 20)), Busy: seconds, Under: 2}
	f.Peers = control.Flow{Bytes: int64(seconds * (30 << 20)), Busy: seconds}
	return f
}

func fakeJob(name string, ranks bool) control.Job {
	const batch = 8 << 20
	share := 0.25
	switch name {
	case "quiet":
		share = 0.002
	}
	j := control.Job{
		ViewName: viewNamed(name), Dataset: name, Typical: 0.012, Longest: 1.4, Here: 4, Waiting: 1,
		Total:  account(400, share, name, 12_000, batch),
		Now:    control.Window{Seconds: 10, Ranks: 4, Account: account(40, share/2, name, 400, batch)},
		Minute: control.Window{Seconds: 60, Ranks: 4, Account: account(240, share/5, name, 400, batch)},
		Facts:  &control.Facts{Ranks: 8, Bytes: 100 << 30, Batch: batch, Again: true, Flows: fakeFlows(3)},
	}
	if name == "silent" {
		j.Silent, j.Waiting, j.Now, j.Minute = 75, 0, control.Window{Seconds: 10}, control.Window{Seconds: 60}
	}
	if ranks {
		for i := range uint64(4) {
			j.Ranks = append(j.Ranks, control.Rank{Rank: 2 * i, Account: account(100, share*float64(i)/1.5, name, 3000, batch)})
		}
	}
	return j
}
