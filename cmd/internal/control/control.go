// Package control is how the rankfs command talks to the daemon that serves a
// mount: JSON over HTTP on a unix socket. One table, rights, says which users may
// use which route; the kernel says which user a caller is.
package control

import (
	"context"
	"time"
)

// A Node is a running daemon. Its methods may be called concurrently. Those
// that take progress call it from one goroutine at a time, often enough for a
// person to watch; they stop soon after ctx is cancelled and leave nothing
// half made.
type Node interface {
	Daemon
	Datasets
	Plans
	Queues
	Kept
	Traces
	Members
}

// A Daemon says how it is.
type Daemon interface {
	Status() Status
	Load(r LoadRequest) (Load, error)
}

// Datasets are what is registered.
type Datasets interface {
	Datasets() []Dataset
	Dataset(name string) (Dataset, error)
	Explain(name string) (Explanation, error)
	Create(ctx context.Context, r CreateRequest, progress func(Progress)) (Dataset, error)
	Refresh(ctx context.Context, r RefreshRequest, progress func(Progress)) (Dataset, error)
	Verify(ctx context.Context, name string, progress func(Progress)) (Verification, error)
	Remove(name string) error
}

// Plans say which rank reads what, and where.
type Plans interface {
	Plan(ctx context.Context, r PlanRequest) (Plan, error)
}

// Members are the nodes of the cluster, and what lets more in.
type Members interface {
	Cluster() Cluster
	CreateToken(ctx context.Context, r TokenRequest) (Token, error)
	Tokens() []TokenInfo
	DropToken(ctx context.Context, id string) error
	DrainNode(ctx context.Context, r DrainRequest) error
	RemoveNode(ctx context.Context, id string) error
}

// Queues hand out batches.
type Queues interface {
	Queues() []Queue
	Queue(name string) (QueueDetail, error)
	ResetQueue(ctx context.Context, r ResetRequest) (Queue, error)
	QueuePolicy(ctx context.Context, r PolicyRequest) (Policy, error)
}

// Kept reports what the cache has, and changes what it is to keep.
type Kept interface {
	Policy(r PolicyRequest) (Policy, error)
	PinCache(r CachePinRequest) (CachePin, error)
	Cached() CacheList
	Evict(ctx context.Context, name string) (Eviction, error)
	Warm(ctx context.Context, r WarmRequest, progress func(Progress)) (Warm, error)
}

// Traces keeps, for datasets, traces of the batches that readers opened.
type Traces interface {
	Traces() []Trace
	Trace(dataset string) (Trace, error)
	LearnTrace(r LearnRequest) (Trace, error)
	ForgetTrace(dataset string) error
}

// A CreateRequest registers a dataset. Empty strings mean the default.
type CreateRequest struct {
	Name   string `json:"name"`
	Source string `json:"source"`          // lmdb:PATH?db=NAME, file:PATH?as=lines ...; PATH is absolute
	Ranks  uint64 `json:"ranks,omitempty"` // default 1
	Batch  string `json:"batch,omitempty"` // 256, 64MiB or chunk; default 256
	Order  string `json:"order,omitempty"` // none, window:N or full; default none
	Seed   uint64 `json:"seed,omitempty"`  // default 0
	Tail   string `json:"tail,omitempty"`  // keep, drop or pad; default keep
}

// Progress is how far a long operation has come.
type Progress struct {
	Stage   string `json:"stage"` // "copying", "indexing", "verifying", "warming"
	Bytes   int64  `json:"bytes"`
	Total   int64  `json:"total"`
	Records uint64 `json:"records"`
}

// A Dataset describes a registered dataset.
type Dataset struct {
	Name       string            `json:"name"`
	Source     string            `json:"source"`
	State      string            `json:"state"`            // "ready" or "stale"
	Reason     string            `json:"reason,omitempty"` // why it is not ready, and what to do
	Version    string            `json:"version"`          // of the source, as indexed
	Records    uint64            `json:"records"`
	Bytes      int64             `json:"bytes"`
	Chunks     int               `json:"chunks"`
	Ranks      uint64            `json:"ranks"`
	Batch      string            `json:"batch"`                   // as it was asked for: records, bytes or "chunk"
	BatchSize  uint64            `json:"batch_records,omitempty"` // of one rank in one step; none of chunks
	Steps      uint64            `json:"steps"`
	Order      string            `json:"order"`
	Seed       uint64            `json:"seed"`
	Tail       string            `json:"tail"`
	Created    time.Time         `json:"created"`
	IndexBytes int64             `json:"index_bytes"`
	Notes      map[string]string `json:"notes,omitempty"` // what the source had to say, as a remainder left out
}

// An Explanation says what the name of a view stands for.
type Explanation struct {
	View    string `json:"view"`      // the shortest name that it has
	Full    string `json:"full_view"` // with all options
	Ranks   uint64 `json:"ranks"`
	Steps   uint64 `json:"steps"`
	Records uint64 `json:"records"` // of the dataset
	Bytes   int64  `json:"bytes"`
	Warning string `json:"warning,omitempty"` // why ranks may not be able to read it
}

// A Verification is the outcome of reading every record of a dataset back.
type Verification struct {
	Records  uint64 `json:"records"`
	Bytes    int64  `json:"bytes"`
	Checksum string `json:"checksum"` // of all records in the source's order
}

// Passthrough says whether the kernel reads batches without the daemon.
type Passthrough struct {
	On     bool   `json:"on"`
	Reason string `json:"reason,omitempty"` // why not, and what would change it
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

// Counters are totals since the mount.
type Counters struct {
	Opens       uint64  `json:"opens"`       // of batches
	OpensReady  uint64  `json:"opens_ready"` // found the slab complete
	OpensWaited uint64  `json:"opens_waited"`
	OpenErrors  uint64  `json:"open_errors"`
	WaitSeconds float64 `json:"wait_seconds"`
	Waits       Waits   `json:"waits"`       // WaitSeconds by cause
	BatchReads  uint64  `json:"batch_reads"` // READ requests for batches that reached the daemon
	Lookups     uint64  `json:"lookups"`
	Fills       uint64  `json:"fills"`
	FillBytes   uint64  `json:"fill_bytes"`
	FillSeconds float64 `json:"fill_seconds"`
	FillErrors  uint64  `json:"fill_errors"`
	Prefetched  uint64  `json:"prefetched"` // fills begun before any open
	Restored    uint64  `json:"restored"`   // batches that were on nvme already
	Evicted     uint64  `json:"evicted"`
	Recycled    uint64  `json:"recycled"`     // slabs whose memory was used again in place
	Plans       uint64  `json:"plans"`        // of what is kept where
	PlanSeconds float64 `json:"plan_seconds"` // of a processor, that these took
	Readers     int     `json:"readers"`      // ranks that are reading now
	OpenHandles int     `json:"open_handles"`
	Views       int     `json:"views"`

	HDFSWaits Ways[float64] `json:"hdfs_waits"` // of Waits.Source
}

// HDFS counts what datanodes were asked for since the mount.
type HDFS struct {
	Bytes    uint64 `json:"bytes"`    // received, with what the protocol adds
	Local    uint64 `json:"local"`    // of these, from this host
	Corrupt  uint64 `json:"corrupt"`  // replicas whose checksums did not match
	Failures uint64 `json:"failures"` // replicas given up for that or any other reason
	Streams  int    `json:"streams"`  // under way

	Ways[uint64]        // bytes
	LocalBlocks  string `json:"local_blocks"` // short-circuit, or over TCP and why
}

// Peers counts what this node and others had of each other since the mount:
// records of chunks, and indexes. Bytes are those on the wire.
type Peers struct {
	Received  Traffic `json:"received"`   // asked for by this node
	Sent      Traffic `json:"sent"`       // asked for by others
	Corrupt   uint64  `json:"corrupt"`    // answers that were given up since their checksum was wrong
	Hedges    uint64  `json:"hedges"`     // a node was slow, and the source was asked beside it
	HedgesWon uint64  `json:"hedges_won"` // and was faster
	Turned    uint64  `json:"turned"`     // connections of others that were over a limit
	Nodes     []Peer  `json:"nodes"`      // those that were asked or have asked, most bytes first
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
	Rests    float64 `json:"rests,omitempty"` // seconds for which it is not asked, having failed several times in a row
}

// A RefreshRequest asks for a dataset to be indexed again. Records counts the
// records of one whose chunks alone were looked for.
type RefreshRequest struct {
	Name    string `json:"name"`
	Records bool   `json:"records,omitempty"`
}

// A TokenRequest asks for a token that lets nodes into the cluster.
type TokenRequest struct {
	Life time.Duration `json:"life"`
	Uses int           `json:"uses"`
	Role string        `json:"role,omitempty"` // "member" or "operator"; default member
}

// A Token lets nodes into the cluster.
type Token struct {
	Token   string    `json:"token"`
	ID      string    `json:"id"`
	Role    string    `json:"role"` // of the nodes that it lets in
	Expires time.Time `json:"expires"`
	Uses    int       `json:"uses"`
	Join    string    `json:"join"` // where to join with it
}

// A TokenInfo is what the cluster keeps of a token. The token itself is not kept.
type TokenInfo struct {
	ID      string    `json:"id"`
	Role    string    `json:"role,omitempty"` // none if the cluster has nodes of the release before
	Uses    int       `json:"uses"`
	Used    int       `json:"used"`
	Host    string    `json:"host,omitempty"` // that it was made on
	Expires time.Time `json:"expires"`
}

// A DrainRequest asks that a node, by its id or host, gets no new work, or that
// it gets some again.
type DrainRequest struct {
	Node  string `json:"node"`
	Drain bool   `json:"drain"`
}

// A Cluster is what a node knows of its cluster.
type Cluster struct {
	ID      string   `json:"id"`
	Self    string   `json:"self"`              // the node that was asked
	Leader  string   `json:"leader,omitempty"`  // none if no majority of voters is up
	Removed bool     `json:"removed,omitempty"` // that node was taken out of the cluster
	Term    uint64   `json:"term"`
	Applied uint64   `json:"applied"` // index of the last change that the node knows
	Nodes   []Member `json:"nodes"`
}

// A Member is one node of a cluster.
type Member struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`
	Addr    string    `json:"addr"`
	State   string    `json:"state"` // "up", "down", "draining" or "removed", as the leader saw it last; without one, as this node does
	Voter   bool      `json:"voter"`
	Role    string    `json:"role,omitempty"` // "member" or "operator"; none if the cluster has nodes of the release before
	Lag     *uint64   `json:"lag,omitempty"`  // changes that it does not know yet; only the leader knows
	Entered time.Time `json:"entered"`
}

// A PlanRequest asks which rank reads what in one epoch of a view, and may pin or
// unpin where the ranks are.
type PlanRequest struct {
	View    string   `json:"view"`            // NAME or NAME@options
	Seats   []Seat   `json:"seats,omitempty"` // where the ranks are, from rank 0 on; none: as the cluster has it
	Pin     bool     `json:"pin,omitempty"`
	Unpin   bool     `json:"unpin,omitempty"`
	Weights *Weights `json:"weights,omitempty"` // solve DL-MPI's program too
}

// A Seat is the host of a number of consecutive ranks.
type Seat struct {
	Host  string `json:"host"` // or the id of its node
	Ranks uint64 `json:"ranks"`
}

// Weights say what DL-MPI's program is to be best at. Only their relation
// matters.
type Weights struct {
	Local uint32 `json:"local"`
	Time  uint32 `json:"time"`
}

// The states of a plan.
const (
	PlanPinned = "pinned" // the same on all nodes from now on
	PlanOpen   = "open"   // as it would be, were it pinned now
	PlanFixed  = "fixed"  // it follows from the view alone
)

// A Plan reports how local the reads of an epoch are, given where ranks and bytes are.
type Plan struct {
	View    string     `json:"view"`      // the shortest name that it has
	Full    string     `json:"full_view"` // with all options
	State   string     `json:"state"`
	Reason  string     `json:"reason,omitempty"` // why a fixed one is
	Pinned  *time.Time `json:"pinned,omitempty"`
	Ranks   uint64     `json:"ranks"`
	Steps   uint64     `json:"steps"`
	Looked  uint64     `json:"looked"`            // steps that the numbers below are of: all, or some of many
	Located bool       `json:"located"`           // it is known where the bytes of the source are
	Racks   int        `json:"racks"`             // that it names
	Nodes   []Reads    `json:"nodes"`             // in the order of their first rank
	Plan    Share      `json:"plan"`              // what the plan comes to
	Strict  Share      `json:"strict"`            // what fixed ranks, assign=strict, would come to
	Serving *Serving   `json:"serving,omitempty"` // of batches that are chunks, where not all are local
	Program *Program   `json:"program,omitempty"`
	Warning string     `json:"warning,omitempty"` // why ranks may not be able to read it

	LocalBlocks string `json:"local_blocks,omitempty"` // of a dataset in HDFS: how what is local comes to this node
}

// Reads are what the ranks of one host read, of the steps looked at.
type Reads struct {
	Host   string `json:"host"`
	Rack   string `json:"rack,omitempty"` // if it is known
	Ranks  uint64 `json:"ranks"`
	Bytes  int64  `json:"bytes"`
	Local  int64  `json:"local"`  // of these, held by the host itself
	Near   int64  `json:"near"`   // and by another of its rack
	Strict int64  `json:"strict"` // what would be local, were the ranks fixed
}

// A Share says how good a division is, of the steps looked at.
type Share struct {
	Local   float64 `json:"local"`   // bytes of all that the reader's host holds
	Balance float64 `json:"balance"` // bytes of the rank that reads most over the mean
	Bytes   Bytes   `json:"bytes"`
}

// Bytes are counted by how far from the reader a host that holds them is.
type Bytes struct {
	Local  int64 `json:"local"` // the reader's host
	Near   int64 `json:"near"`  // another of its rack
	Remote int64 `json:"remote"`
}

// Serving says which hosts send the bytes that are not local, if these are spread as
// evenly as their replicas allow. HDFS chooses for itself, so its busiest host sends
// no less.
type Serving struct {
	Hosts   int     `json:"hosts"`   // that send something
	Busiest string  `json:"busiest"` // of them
	Share   float64 `json:"share"`   // of what is not local, that it sends
}

// A Program is the best division of a dataset's chunks as a whole, by DL-MPI's
// program, among ranks of equal speed.
type Program struct {
	Chunks int     `json:"chunks"`
	Best   Point   `json:"best"`
	Curve  []Point `json:"curve"` // all that no other beats in both, or some of many
	Points int     `json:"points"`
}

// A Point is a division that none other beats both in locality and in time.
type Point struct {
	Local int `json:"local"` // chunks that are local
	Most  int `json:"most"`  // chunks of the rank that reads most
}

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
	Cluster     Cluster     `json:"cluster"`
	Datasets    []Dataset   `json:"datasets"`
	Warnings    []string    `json:"warnings,omitempty"`
}
