package dispatch

import "rankfs/meta/state"

// QueueReads are the queues of the cluster and their readers, as far as this node knows. This
// and what is below is used concurrently.
type QueueReads interface {
	Queue(view string) (state.Queue, bool)
	Readers(view string) []state.Reader
}

// Hosts are those of the cluster's nodes.
type Hosts interface {
	HostOf(node string) string // empty if it is not known
}

// Suspects are the units that readers gave back, and where these were.
type Suspects interface {
	Suspects(view string) []state.Suspect
	Hosts
}

// Changes says when there is something new of queues.
type Changes interface {
	QueuesChanged() <-chan struct{}
}

// ReaderState is what the readers of a node go by.
type ReaderState interface {
	Queues() []state.Queue
	QueueReads
	Suspects
	Changes
}

// Agreed is what the cluster agreed on about a reader, or a unit, of a queue.
type Agreed interface {
	Reader(view, id string) (state.Reader, bool)
	LastTaken(view, id string) (nonce uint64, last state.TakenUnit, ok bool)
	Fate(view string, unit int64) state.Fate
	Suspect(view string, unit int64) (state.Suspect, bool)
}

// queueState is what the leader of one queue goes by.
type queueState interface {
	QueueReads
	Agreed
	Hosts
	Nodes() []state.Node
}

// Settings are those of the cluster.
type Settings interface {
	Setting(key string) string
}

// LeaderState is what the leader of all queues goes by.
type LeaderState interface {
	queueState
	QueueState(view string) (state.QueueState, bool)
	Settings
	Version() int // of the commands that all nodes understand
	Changes
}
