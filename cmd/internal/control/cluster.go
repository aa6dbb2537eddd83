package control

import (
	"context"
	"time"
)

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

// A TokenInfo is a token as the cluster keeps it, without its secret.
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

// A Promotion says how far it is that a node becomes an operator.
type Promotion struct {
	ID     string   `json:"id"`
	Host   string   `json:"host"`
	Role   string   `json:"role"`             // of the node now
	Said   []string `json:"said,omitempty"`   // hosts of voters on which it was said, as long as that is not enough
	Silent []string `json:"silent,omitempty"` // hosts of the other voters
	Needed int      `json:"needed,omitempty"` // how many have to say it
}

// A Cluster is the cluster as a node knows it.
type Cluster struct {
	ID      string   `json:"id"`
	Self    string   `json:"self"`              // the node that was asked
	Leader  string   `json:"leader,omitempty"`  // none if no majority of voters is up
	Removed bool     `json:"removed,omitempty"` // that node was taken out of the cluster
	Term    uint64   `json:"term"`
	Applied uint64   `json:"applied"`       // index of the last change that the node knows
	Plans   int      `json:"settled_plans"` // that the node knows
	Nodes   []Member `json:"nodes"`
}

// A Member is one node of a cluster.
type Member struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`             // by which it was admitted
	Called  string    `json:"called,omitempty"` // what its host is called now, if by another name
	Addr    string    `json:"addr"`
	State   string    `json:"state"` // "up", "down", "draining" or "removed", as the leader saw it last; without one, as this node does
	Voter   bool      `json:"voter"`
	Role    string    `json:"role,omitempty"` // "member" or "operator"; none if the cluster has nodes of the release before
	Lag     *uint64   `json:"lag,omitempty"`  // changes that it does not know yet; only the leader knows, of the others
	Entered time.Time `json:"entered"`
	Leaving *Leaving  `json:"leaving,omitempty"` // of a node that is draining
}

// Leaving counts the maps on a node of which other nodes have too few copies as
// yet: it would be lost with the node.
type Leaving struct {
	Maps  int    `json:"maps"`
	Bytes int64  `json:"bytes"`
	Stuck string `json:"stuck,omitempty"` // why they get none, and what to do
}

// Leases are the ranks and batches that the readers of one node hold. They have no end by the
// clock. A rank is a node's until it is opened on another one, or its job is the oldest of
// too many. A batch of a queue is a reader's until it takes the next one, closes the queue or
// dies, or its node is silent for five seconds.
type Leases struct {
	ID      string     `json:"id"`
	Host    string     `json:"host"`
	Ranks   uint64     `json:"ranks"`           // that it claims, of all jobs
	Batches int        `json:"batches"`         // of queues
	Since   *time.Time `json:"since,omitempty"` // when it took the batch that it has had for longest
}

// Cluster asks what the node knows of its cluster.
func (c *Client) Cluster(ctx context.Context) (Cluster, error) {
	return ask[Cluster](ctx, c, "cluster", struct{}{}, nil)
}

// CreateToken makes a token that lets nodes into the cluster.
func (c *Client) CreateToken(ctx context.Context, r TokenRequest) (Token, error) {
	return change[Token](ctx, c, "token", r)
}

// Tokens asks which tokens still let nodes in.
func (c *Client) Tokens(ctx context.Context) ([]TokenInfo, error) {
	return ask[[]TokenInfo](ctx, c, "tokens", struct{}{}, nil)
}

// DropToken has a token let no more nodes in.
func (c *Client) DropToken(ctx context.Context, id string) error {
	_, err := change[struct{}](ctx, c, "drop-token", named{id})
	return err
}

// DrainNode has a node get no new work, or some again.
func (c *Client) DrainNode(ctx context.Context, r DrainRequest) error {
	_, err := change[struct{}](ctx, c, "drain", r)
	return err
}

// RemoveNode takes a node out of the cluster for good.
func (c *Client) RemoveNode(ctx context.Context, id string) error {
	_, err := change[struct{}](ctx, c, "remove-node", named{id})
	return err
}

// PromoteNode makes a node an operator, or has the node that is asked say that it is to
// be one.
func (c *Client) PromoteNode(ctx context.Context, id string) (Promotion, error) {
	return change[Promotion](ctx, c, "promote-node", named{id})
}
