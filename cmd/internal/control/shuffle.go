package control

import (
	"context"
	"time"

	"rankfs/meta"
)

// A User is the caller of a request, as the kernel knows it. An admin gets at the jobs of all users of
// the shuffle pool, others at their own.
type User struct {
	UID, GID uint32
	Admin    bool
}

// What a node has of the shuffle pool is told as it is counted.
type (
	Pool      = meta.PoolStats
	PoolTally = meta.PoolTally
)

// A PoolJob is a job of the shuffle pool.
type PoolJob struct {
	Job    string     `json:"job"`
	UID    uint32     `json:"uid"` // of its owner
	Stages int        `json:"stages"`
	Made   time.Time  `json:"made"`
	Held   bool       `json:"held"`            // its file hold was open once
	Quota  int64      `json:"quota,omitempty"` // bytes that all copies of its maps may have; none: any
	Kept   int64      `json:"copies_bytes"`    // that they have
	Users  []string   `json:"used_on"`         // hosts on which something of it is open
	Ends   *time.Time `json:"ends,omitempty"`  // when it goes if it is not used until then

	Datasets []string `json:"datasets,omitempty"` // that are made of it: it stays while there are any
	PoolTally
}

// A PoolJobDetail is a job with its stages.
type PoolJobDetail struct {
	PoolJob
	Used int64       `json:"used"` // memory of this node
	All  []PoolStage `json:"all_stages"`
}

// A PoolStage is a stage of a job.
type PoolStage struct {
	Job    string `json:"job"`
	Stage  string `json:"stage"`
	State  string `json:"state"` // open, sealed, or lost: there are maps without a copy
	Why    string `json:"why,omitempty"`
	Spec   string `json:"spec,omitempty"`
	Resets uint64 `json:"resets"`
	PoolTally
}

// A PoolStageDetail is a stage with all that is known of it.
type PoolStageDetail struct {
	PoolStage
	Text      string     `json:"text"`       // of its file state
	Copies    int        `json:"copies"`     // of each map: as many as its spec says, or as there are hosts
	Nodes     []PoolNode `json:"nodes"`      // that have copies
	OpenMaps  []uint64   `json:"open_maps"`  // the first that are not committed; at most MaxListed, as what follows
	LostMaps  []uint64   `json:"lost_maps"`  // of which there is no copy
	AwayMaps  []uint64   `json:"away_maps"`  // whose copies are all on nodes that are down
	PartBytes []int64    `json:"part_bytes"` // of each part, about if it is a range of keys; none if it is not known, or they are more than MaxParts
	Waits     []PoolWait `json:"waits"`      // on this node, the longest first
}

// MaxParts bounds the list of what parts weigh.
const MaxParts = 1 << 16

// A PoolNode counts what a node keeps of a stage.
type PoolNode struct {
	ID    string `json:"id"`
	Host  string `json:"host"`
	Up    bool   `json:"up"`
	Maps  int    `json:"maps"`
	Bytes int64  `json:"bytes"`
}

// A PoolWait is an open of a part that has not returned.
type PoolWait struct {
	Part    string    `json:"part"`
	Thread  int32     `json:"thread,omitempty"` // that waits; none if it is not known here
	Since   time.Time `json:"since"`
	Sealing bool      `json:"sealing"` // it waits for maps; else for the bytes
}

// A PoolRequest makes a job, and a stage of it, by which the job is made if it is not
// there; or gives a job another quota.
type PoolRequest struct {
	Name string `json:"name"`           // JOB or JOB/STAGE
	Spec string `json:"spec,omitempty"` // of the stage
	// Quota is the number of bytes that all copies of the job's maps may have; zero: any. A job
	// that there is keeps its own.
	Quota int64 `json:"quota,omitempty"`
}

// PoolJobs asks for all jobs of the shuffle pool.
func (c *Client) PoolJobs(ctx context.Context) ([]PoolJob, error) {
	return ask[[]PoolJob](ctx, c, "pool-jobs", struct{}{}, unseen)
}

// PoolJob asks for one job of the caller's.
func (c *Client) PoolJob(ctx context.Context, name string) (PoolJobDetail, error) {
	return ask[PoolJobDetail](ctx, c, "pool-job", named{name}, unseen)
}

// PoolStage asks for one stage, JOB/STAGE.
func (c *Client) PoolStage(ctx context.Context, name string) (PoolStageDetail, error) {
	return ask[PoolStageDetail](ctx, c, "pool-stage", named{name}, unseen)
}

// MakePool makes a job of the caller's, or a stage.
func (c *Client) MakePool(ctx context.Context, r PoolRequest) error {
	_, err := change[struct{}](ctx, c, "make-pool", r)
	return err
}

// SetQuota gives a job another quota; with zero none.
func (c *Client) SetQuota(ctx context.Context, r PoolRequest) error {
	_, err := change[struct{}](ctx, c, "pool-quota", r)
	return err
}

// SealStage says that no more maps come to a stage.
func (c *Client) SealStage(ctx context.Context, name string) (PoolStage, error) {
	return change[PoolStage](ctx, c, "seal-stage", named{name})
}

// ResetStage begins a stage anew, without its maps.
func (c *Client) ResetStage(ctx context.Context, name string) (PoolStage, error) {
	return change[PoolStage](ctx, c, "reset-stage", named{name})
}

// DropPool removes a job with all that it has, or a stage.
func (c *Client) DropPool(ctx context.Context, name string) error {
	_, err := change[struct{}](ctx, c, "drop-pool", named{name})
	return err
}
