package policy

// A Level is a form in which an item's bytes can be had, the fastest last.
type Level uint8

const (
	Source Level = iota // not kept here: a peer or the source has it
	Disk                // a file on NVMe, mapped by ranks in place
	Packed              // compressed in memory: unpacked before it is opened
	RAM                 // in memory, mapped by ranks in place
	Levels
)

// An Item is a batch, or a chunk that batches are made of.
type Item struct {
	Bytes  [Levels]int64   // that it takes at each level; below zero: it cannot be there
	Wait   [Levels]float64 // seconds that an open waits if it is there, seldom rising with the level
	Move   [Levels]float64 // seconds of work to bring it there, once its bytes are in memory: not the fetch
	Now    Level           // where it is
	Floor  Level           // pinned: never below this level, as long as the budgets allow
	Series int32           // of the series in its key; equal numbers, equal series
	Group  int32           // all or nothing with the others of its group; below zero: none
	Job    int32           // the job on whose account it is kept; below zero: none
	Last   float64         // when it was used last, in seconds; below zero: never
}

// Stays reports whether its pin keeps an item where it is.
func (i *Item) Stays() bool { return i.Floor > Source && i.Now <= i.Floor }

// A Use is an open that is known to come.
type Use struct {
	Item int32
	At   float64 // in seconds, on the clock of Problem.Now
}

// Passing is the memory that is kept for batches which are made ready for readers and are not to
// stay. It is as many bytes as are made ready, but used-memory at most, since what fits stays, and
// half of memory at most. Policies do not divide it.
func Passing(ready, used, memory int64) int64 { return max(0, min(ready, used-memory, memory/2)) }

// A Problem is what a policy decides on at one moment. Memory is the budget of
// RAM and Packed together.
type Problem struct {
	Now    float64
	Memory int64
	Disk   int64
	Items  []Item
	Uses   []Use // ascending by time, as far as the future is known
}

// A Policy decides where items should be. It may keep what it learnt from
// one call to the next; it is used by one goroutine at a time.
type Policy interface {
	// Choose sets levels[i], where p.Items[i] should be until the next call.
	// The levels that it sets fit the budgets. It keeps neither p nor levels.
	Choose(p *Problem, levels []Level)

	// Worth orders what is kept between two choices: of the items at a level,
	// the one worth least goes first if room is needed. next is when i is used
	// next, +Inf if that is not known. It costs a few nanoseconds and may be
	// compared with what it was for other items, at any time since the last.
	Worth(i *Item, next float64) float64
}
