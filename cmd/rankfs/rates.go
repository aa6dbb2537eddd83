package main

import (
	"time"

	"rankfs/cmd/internal/control"
)

// Rates are the speeds at which the counters of a daemon grow.
type rates struct {
	Seconds    float64 `json:"seconds"` // that were looked at; zero: too few
	Source     float64 `json:"source_bytes"`
	Peers      float64 `json:"peer_bytes"`
	Files      float64 `json:"hdfs_files_bytes"` // of Source, as the two that follow
	LocalTCP   float64 `json:"hdfs_local_tcp_bytes"`
	Remote     float64 `json:"hdfs_remote_bytes"`
	Filled     float64 `json:"fill_bytes"`
	Ahead      float64 `json:"prefetched"`
	Evictions  float64 `json:"evicted"`
	RAMHits    float64 `json:"ram_hits"`  // share of the opens that found their batch in memory
	DiskHits   float64 `json:"nvme_hits"` // share of the batches that were not there and came from disk
	Opened     bool    `json:"-"`         // there were any opens
	NeededDisk bool    `json:"-"`         // and any that were not in memory
}

// A history is the loads that a daemon reported in the last seconds.
type history []control.Load

// calm is the time over which rates are taken: a figure that changes each second is not
// read, and the jobs' windows are as long.
const calm = 10 * time.Second

// add forgets what is too old, and all of a daemon that was started anew.
func (h history) add(l control.Load) history {
	for len(h) > 1 && l.Time.Sub(h[0].Time) > calm {
		h = h[1:]
	}
	if len(h) > 0 && !h[0].Since.Equal(l.Since) {
		h = nil
	}
	return append(h, l)
}

// rates are those between the oldest and the newest.
func (h history) rates() (r rates) {
	if len(h) < 2 {
		return r
	}
	from, to := h[0], h[len(h)-1]
	r.Seconds = to.Time.Sub(from.Time).Seconds()
	if r.Seconds <= 0 {
		return rates{}
	}
	a, b := from.Counters, to.Counters
	per := func(n float64) float64 { return n / r.Seconds }
	r.Source, r.Peers = per(float64(to.Source.Bytes-from.Source.Bytes)), per(float64(to.Peers.Bytes-from.Peers.Bytes))
	ways, was := to.HDFS, from.HDFS
	r.Files, r.LocalTCP = per(float64(ways.Files.Bytes-was.Files.Bytes)), per(float64(ways.LocalTCP.Bytes-was.LocalTCP.Bytes))
	r.Remote = per(float64(ways.Remote.Bytes - was.Remote.Bytes))
	r.Filled = per(float64(b.FillBytes - a.FillBytes))
	r.Ahead, r.Evictions = per(float64(b.Prefetched-a.Prefetched)), per(float64(b.Evicted-a.Evicted))
	opens, ready := b.Opens-a.Opens, b.OpensReady-a.OpensReady
	restored, made := b.Restored-a.Restored, b.Fills-a.Fills
	r.Opened, r.NeededDisk = opens > 0, restored+made > 0
	if r.Opened {
		r.RAMHits = float64(ready) / float64(opens)
	}
	if r.NeededDisk {
		r.DiskHits = float64(restored) / float64(restored+made)
	}
	return r
}
