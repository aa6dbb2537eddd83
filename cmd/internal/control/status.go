package control

import (
	"context"
	"time"
)

// Status is the state of a daemon.
type Status struct {
	Version     string      `json:"version"`
	PID         int         `json:"pid"`
	Mount       string      `json:"mount"`
	State       string      `json:"state_dir"`
	Socket      string      `json:"socket"`
	Since       time.Time   `json:"since"`
	Passthrough Passthrough `json:"passthrough"`
	Tiers       []Tier      `json:"tiers"`
	Counters    Counters    `json:"counters"`
	HDFS        *HDFS       `json:"hdfs,omitempty"`  // none if no cluster was asked
	Peers       *Peers      `json:"peers,omitempty"` // none if no node asked another
	Pool        *Pool       `json:"pool,omitempty"`  // none if this node has none of the shuffle pool
	Cluster     Cluster     `json:"cluster"`
	Leases      []Leases    `json:"leases,omitempty"` // of the nodes that have any, most batches first
	Datasets    []Dataset   `json:"datasets"`
	Faults      []Fault     `json:"faults,omitempty"`
	Warnings    []string    `json:"warnings,omitempty"` // what each fault is
}

// A Fault is something that is not as it should be. /.rankfs/health has a line for each.
type Fault struct {
	Since time.Time `json:"since"`
	Kind  string    `json:"kind"` // a word, as leader or disk
	What  string    `json:"what"`
}

// A Tier is a place where slabs live. Bytes are real ones, with those of
// slabs that are deleted but still mapped by a rank.
type Tier struct {
	Name   string `json:"name"` // "ram", "nvme"
	Where  string `json:"where"`
	Budget int64  `json:"budget"`
	Used   int64  `json:"used"`
	Dying  int64  `json:"dying"`            // part of Used: discarded, but a rank still maps it
	Copies int64  `json:"copies,omitempty"` // part of Used: of source files, on nvme
	Slabs  int    `json:"slabs"`
	State  string `json:"state"`           // "ok", or what is wrong
	Empty  string `json:"empty,omitempty"` // why nothing is in it, though nothing is wrong

	Damaged uint64 `json:"damaged,omitempty"` // slabs that did not match their checksum, and were not served
	Lost    uint64 `json:"lost,omitempty"`    // slabs whose file was removed by something else
	Failed  uint64 `json:"failed,omitempty"`  // slabs that the disk could not read
}

// Passthrough says whether the kernel reads batches without the daemon.
type Passthrough struct {
	On     bool   `json:"on"`
	Reason string `json:"reason,omitempty"` // why not, and what would change it
}

// HDFS counts what datanodes were asked for since the mount.
type HDFS struct {
	Bytes    uint64 `json:"bytes"`    // received, with what the protocol adds
	Local    uint64 `json:"local"`    // of these, from this host
	Corrupt  uint64 `json:"corrupt"`  // replicas whose checksums did not match
	Failures uint64 `json:"failures"` // replicas given up for that or any other reason
	Streams  int    `json:"streams"`  // under way

	Ways[uint64]        // bytes
	LocalBlocks  string `json:"local_blocks"` // short-circuit, or over TCP and why, or both, or that none was asked for yet
}

// Peers counts what this node and others had of each other since the mount:
// records of chunks, and indexes. Bytes are those on the wire.
type Peers struct {
	Received  Traffic `json:"received"`    // asked for by this node
	Sent      Traffic `json:"sent"`        // asked for by others
	Corrupt   uint64  `json:"corrupt"`     // answers that were given up since their checksum was wrong
	Hedges    uint64  `json:"hedges"`      // a node was slow, and the source was asked beside it
	HedgesWon uint64  `json:"hedges_won"`  // and was faster
	Turned    uint64  `json:"turned_away"` // connections of others that were over a limit
	Nodes     []Peer  `json:"nodes"`       // those that were asked or have asked, most bytes first
}

// Traffic counts what went between nodes in one direction.
type Traffic struct {
	Bytes    uint64 `json:"bytes"`
	Records  uint64 `json:"records"`
	Requests uint64 `json:"requests"`
	Refused  uint64 `json:"refused"` // requests that the other node was too busy for
	Failed   uint64 `json:"failed"`  // requests that failed otherwise
}

// A Peer is one other node.
type Peer struct {
	ID       string  `json:"id"`
	Host     string  `json:"host"`
	Received Traffic `json:"received"`
	Sent     Traffic `json:"sent"`
	BackOff  float64 `json:"back_off_seconds,omitempty"` // seconds for which it is not asked, having failed several times in a row
}

// A NodeStatus is one node of the cluster, and what it says of itself; no NodeSummary, and why,
// if it does not answer.
type NodeStatus struct {
	Member
	*NodeSummary
	Error string `json:"error,omitempty"`
}

// A NodeSummary is a node's status in short.
type NodeSummary struct {
	Version string  `json:"version"`
	Readers int     `json:"readers"`                 // as in Counters
	Plans   *int    `json:"settled_plans,omitempty"` // that the node knows, and the term of Raft that it is in;
	Term    *uint64 `json:"term,omitempty"`          // a node of an earlier release says neither
	Tiers   []Tier  `json:"tiers"`
	Faults  []Fault `json:"faults"`
}

// Status asks for the state of the daemon.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, "status", struct{}{}, nil)
}

// All asks for the state of all nodes of the cluster in short.
func (c *Client) All(ctx context.Context) ([]NodeStatus, error) {
	return ask[[]NodeStatus](ctx, c, "all", struct{}{}, nil)
}
