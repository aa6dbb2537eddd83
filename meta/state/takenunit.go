package state

// A Finish says whether the unit that the reader held is done by it.
type Finish string

const (
	// Finished: it is done, by this reader.
	Finished Finish = "finished"
	// Lost: another that held it too was the first.
	Lost Finish = "lost"
	// Returned: the reader held nothing. What it may think that it held was
	// given back when its node was seen down, or when the queue was reset.
	Returned Finish = "returned"
)

// A Refusal is why a unit was not taken. The scheduler, whose knowledge was
// old, has to choose again.
type Refusal string

const (
	RefusedDone Refusal = "done" // the unit is finished
	RefusedHeld Refusal = "held" // two hold it already
	// RefusedAside: it was set aside.
	RefusedAside Refusal = "aside"
)

// TakenUnit is the result of a TakeUnit.
type TakenUnit struct {
	Unit     int64   // that was taken; -1 if none
	Refused  Refusal `json:",omitempty"`
	Finish   Finish  `json:",omitempty"` // empty if nothing was to be finished
	Finished int64   // the unit that Finish is about; -1 if none
}
