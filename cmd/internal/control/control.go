package control

import "context"

// A Node is a running daemon. Its methods may be called concurrently. Those
// that take progress call it from one goroutine at a time, often enough for a
// person to watch; they stop soon after ctx is cancelled and leave nothing
// half made.
//
// There is one interface a domain, with a method for each of its calls in routes.go, so that the
// compiler sees whether a daemon, or what stands for one in a test, answers all of them.
type Node interface {
	Daemon
	Datasets
	Plans
	Queues
	Cache
	Traces
	Members
	Shuffles
}

// A Daemon says how it is.
type Daemon interface {
	Status() Status
	All(ctx context.Context) []NodeStatus
	Load(r LoadRequest) (Load, error)
}

// Datasets are the registered datasets.
type Datasets interface {
	Datasets() []Dataset
	Dataset(name string) (Dataset, error)
	Explain(ctx context.Context, r ExplainRequest) (Explanation, error)
	Create(ctx context.Context, r CreateRequest, progress func(Progress)) (Dataset, error)
	Refresh(ctx context.Context, r RefreshRequest, progress func(Progress)) (Dataset, error)
	Verify(ctx context.Context, name string, progress func(Progress)) (Verification, error)
	Remove(name string) error
}

// Plans say which rank reads what, and where.
type Plans interface {
	Plan(ctx context.Context, r PlanRequest) (Survey, error)
}

// Members are the nodes of the cluster, and what lets more in.
type Members interface {
	Cluster() Cluster
	CreateToken(ctx context.Context, r TokenRequest) (Token, error)
	Tokens() []TokenInfo
	DropToken(ctx context.Context, id string) error
	DrainNode(ctx context.Context, r DrainRequest) error
	RemoveNode(ctx context.Context, id string) error
	PromoteNode(ctx context.Context, id string) (Promotion, error)
}

// Queues hand out batches.
type Queues interface {
	Queues() []Queue
	Queue(name string) (QueueDetail, error)
	ResetQueue(ctx context.Context, r ResetRequest) (Queue, error)
	DropQueue(ctx context.Context, name string) error
	QueuePolicy(ctx context.Context, r PolicyRequest) (Policy, error)
}

// Cache reports what the cache has, and changes what it is to keep.
type Cache interface {
	Policy(r PolicyRequest) (Policy, error)
	PinCache(ctx context.Context, r CachePinRequest) (CachePin, error)
	Cached() CacheList
	Evict(ctx context.Context, name string) (Eviction, error)
	Warm(ctx context.Context, r WarmRequest, progress func(Progress)) (Warm, error)
}

// Shuffles are the jobs of the shuffle pool. Those of other users are out of reach for
// all but admins.
type Shuffles interface {
	PoolJobs(ctx context.Context) ([]PoolJob, error)
	PoolJob(ctx context.Context, u User, name string) (PoolJobDetail, error)
	PoolStage(ctx context.Context, u User, name string) (PoolStageDetail, error)
	MakePool(ctx context.Context, u User, r PoolRequest) error
	SetQuota(ctx context.Context, u User, r PoolRequest) error
	SealStage(ctx context.Context, u User, name string) (PoolStage, error)
	ResetStage(ctx context.Context, u User, name string) (PoolStage, error)
	DropPool(ctx context.Context, u User, name string) error
}

// Traces keeps, for datasets, traces of the batches that readers opened.
type Traces interface {
	Traces() []Trace
	Trace(dataset string) (Trace, error)
	LearnTrace(r LearnRequest) (Trace, error)
	ForgetTrace(dataset string) error
}
