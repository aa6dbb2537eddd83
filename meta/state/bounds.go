package state

// Bounds on what the machine holds. Each node has all of it in memory, and a
// node that joins is sent it, so the sum matters: a cluster that reaches every
// bound at once takes about a gigabyte.
const (
	// MaxCommand is a plan of MaxRanks ranks, no two neighbours on one node.
	MaxCommand = 24 << 20

	MaxTokens = 1024 // with uses left
	// MaxSpent bounds tokens that are used up or dropped and not yet expired:
	// until then the command that made one must not make it again.
	MaxSpent = 8192
	MaxUses  = 4096 // of one token: one for each node there can be

	MaxNodes   = 4096
	MaxRemoved = 1 << 20 // nodes that there were: none may return

	MaxDatasets      = 1 << 16
	MaxRegistration  = 64 << 10 // bytes of one dataset's registration
	MaxRegistrations = 64 << 20 // bytes of all
	MaxBases         = 16       // that a dataset is made of

	MaxRankCounts    = 256     // numbers of ranks with claims, of one dataset
	MaxAllRankCounts = 1 << 16 // of all
	MaxClaimed       = 1 << 22 // ranks of all these: 64 MiB

	MaxPlans = 1 << 16
	MaxRuns  = 1 << 21 // runs of all rank maps that differ: 48 MiB

	MaxQueues     = 4096
	MaxUserQueues = MaxQueues / 4   // of one user but root
	MaxUnits      = 1 << 28         // of one queue: 32 MiB
	MaxAllUnits   = 1 << 31         // of all: 256 MiB
	MaxUserUnits  = MaxAllUnits / 4 // of all queues of one user but root
	MaxWorkers    = 1 << 16         // of one queue
	MaxAllWorkers = 1 << 20         // of all: 300 MiB
	MaxWorkerID   = 64              // bytes

	// MaxReturns is how many workers give a unit back before it is set aside.
	// A node that reboots, a job that is killed and a program with an error
	// in its first lines may follow one another.
	MaxReturns     = 4
	MaxSuspects    = MaxWorkers // of one queue: as when all its workers end at once
	MaxAllSuspects = 1 << 18    // of all: 120 MiB

	MaxSettings     = 256
	MaxSettingKey   = 64
	MaxSettingValue = 4096

	MaxPoolJobs   = 1 << 12
	MaxUserJobs   = 64      // of one user
	MaxStages     = 1 << 14 // of all jobs
	MaxCommits    = 1 << 18 // maps of all stages: 35 MiB
	MaxMapBytes   = 1 << 41 // of one map: so that what copies of all have is a number
	MaxCommitMaps = 1 << 10 // maps that are committed by one command: 30 KB

	MaxVoters = 64 // noted in a command; five vote, and some more while that changes

	maxText = 256 // bytes of a host, an address, a fingerprint, a policy
)
