package admin

import (
	"rankfs/cmd/internal/control"
	"rankfs/meta/stall"
)

// What is counted by cause of waits, as it is told: the ways of HDFS are parts of the
// source.

func account(t stall.Totals) control.Account {
	return control.Account{
		OpenCounts: t.OpenCounts, RankSeconds: t.Time.Seconds(), Stalled: t.Stalled.Seconds(),
		Waits: waitsOf(t.Wait), HDFSWaits: hdfsWaits(t.Wait), MemoryWait: t.Wait[stall.Memory].Seconds(),
	}
}

func window(w stall.Window) control.Window {
	return control.Window{Seconds: w.Width.Seconds(), Ranks: w.Ranks, Account: account(w.Totals)}
}

func waitsOf(s stall.ByCause) control.Waits {
	source := s[stall.Source] + s[stall.ByFile] + s[stall.ByTCP] + s[stall.Remote]
	return control.Waits{
		Admission: (s[stall.Admission] + s[stall.Memory]).Seconds(), Overhead: s[stall.Overhead].Seconds(), Source: source.Seconds(),
		Peer: s[stall.Peer].Seconds(), Decode: s[stall.Decode].Seconds(), Disk: s[stall.Disk].Seconds(),
	}
}

func hdfsWaits(s stall.ByCause) control.Ways[float64] {
	return ways(func(c stall.Cause) float64 { return s[c].Seconds() })
}

func flows(f [stall.Causes]stall.Flow) control.Flows {
	of := func(c stall.Cause) control.Flow {
		return control.Flow{Bytes: f[c].Bytes, Busy: f[c].Busy.Seconds(), Held: f[c].Held.Seconds(), Under: f[c].Under}
	}
	return control.Flows{Source: of(stall.Source), Peers: of(stall.Peer), Decoded: of(stall.Decode), HDFS: ways(of)}
}

func ways[T any](of func(stall.Cause) T) control.Ways[T] {
	return control.Ways[T]{Files: of(stall.ByFile), LocalTCP: of(stall.ByTCP), Remote: of(stall.Remote)}
}
