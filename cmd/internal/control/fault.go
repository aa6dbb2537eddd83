package control

import "time"

// A Fault is something that is not as it should be. /.rankfs/health has a line for each.
type Fault struct {
	Since time.Time `json:"since"`
	Kind  string    `json:"kind"` // a word, as leader or disk
	What  string    `json:"what"`
}
