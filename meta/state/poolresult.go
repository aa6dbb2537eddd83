package state

// A poolResult is what a command of the pool came to: one of these.
type poolResult struct {
	Job    *PoolJob    `json:",omitempty"`
	Stage  *PoolStage  `json:",omitempty"`
	Commit *Commit     `json:",omitempty"` // that has won, of KeepCopy
	Maps   []Committed `json:",omitempty"`
}

// Job is the job as it is now, of MakeJob, SetQuota and UseJob.
func (r Result) Job() *PoolJob { return came[poolResult](r).Job }

// Stage is the stage as it is now, of MakeStage, SpecifyStage, BeginStage, SealStage,
// ResetStage and PutBlobs.
func (r Result) Stage() *PoolStage { return came[poolResult](r).Stage }

// Maps say what each came to, of CommitMaps.
func (r Result) Maps() []Committed { return came[poolResult](r).Maps }
