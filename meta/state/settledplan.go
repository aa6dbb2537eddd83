package state

// A SettledPlan is the input of the assignment of a view, the same on every
// node: the dataset's index, and where the ranks are. The rest is in the view.
type SettledPlan struct {
	View       string
	Generation uint64 // of the dataset
	Index      string // hash of its index file
	Nodes      Runs   `json:",omitempty"`
	Sequence   uint64 // the later it was settled, the larger
	Settled    int64  `json:"Pinned"` // time of the cluster
}

func (p *SettledPlan) copy() *SettledPlan {
	c := *p
	return &c
}
