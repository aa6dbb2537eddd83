package admin

import (
	"context"
	"encoding/json"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/control"
	"rankfs/fetch/hdfs"
	"rankfs/fs"
)

// A status says how the daemon is.
type status struct {
	daemon   daemon
	tree     passing // set by Start
	hdfs     interface{ Stats() hdfs.Stats }
	supply   *supply
	peers    *peers
	shuffles *shuffles
	members  *membership
	datasets *datasets
	queues   *queues
	faults   *faults
	health   *health
	tables   *tables
}

// A daemon is what does not change of one: the directory is of its state.
type daemon struct {
	version, mount, dir, socket string
	since                       time.Time
}

// Status is the state of the daemon.
func (n *status) Status() control.Status {
	all := n.datasets.Datasets() // first: it looks at their sources, and those that have changed are faults
	s := n.status()
	s.Datasets, s.Leases = all, n.queues.leases()
	return s
}

// Files are the files below /.rankfs.
func (n *status) Files() []fs.File {
	status := fs.File{Name: "status.json", Content: func() []byte {
		text, err := json.MarshalIndent(n.status(), "", "  ")
		if err != nil {
			panic(err) // strings and numbers
		}
		return append(text, '\n')
	}}
	health := fs.File{Name: "health", Content: n.health.text}
	return append(n.tables.files(), status, health)
}

// status is the part of Status that costs nothing: it calls no source.
func (n *status) status() control.Status {
	on, reason := n.tree.Passthrough()
	tiers, counters := n.supply.stats(n.supply.report())
	s := control.Status{
		Version: n.daemon.version, PID: unix.Getpid(), Mount: n.daemon.mount,
		State: n.daemon.dir, Socket: n.daemon.socket, Since: n.daemon.since,
		Passthrough: control.Passthrough{On: on, Reason: reason},
		Tiers:       tiers, Counters: counters,
	}
	if h := hdfsOf(n.hdfs.Stats()); h != (control.HDFS{}) {
		s.HDFS = &h
	}
	s.Peers = n.peers.traffic()
	s.Pool = n.shuffles.stats()
	s.Cluster = n.members.Cluster()
	s.Faults = n.health.note(n.faults.find(s.Cluster, tiers))
	for _, f := range s.Faults {
		s.Warnings = append(s.Warnings, f.What)
	}
	return s
}

func hdfsOf(s hdfs.Stats) control.HDFS {
	return control.HDFS{Bytes: s.Bytes, Local: s.Local, Corrupt: s.Corrupt, Failures: s.Failures, Streams: s.Streams,
		Ways:        control.Ways[uint64]{Files: s.Files, LocalTCP: s.Local - s.Files, Remote: s.Bytes - s.Local},
		LocalBlocks: s.LocalBlocks}
}

// Look looks at what is wrong.
func (n *status) Look() {
	tiers := n.supply.tiers()
	n.health.note(n.faults.find(n.members.Cluster(), tiers))
}

// Watch looks until ctx is done.
func (n *status) Watch(ctx context.Context) {
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.Look()
		}
	}
}
