// Package stall accounts for waiting: of every open of a batch it knows whether
// the batch was ready, and if not for how long the rank waited and for what. It
// does no I/O, and its time comes from a clock that tests can move.
//
// A fill goes through causes one after the other, and a Clock adds up how long
// it was in each. A Wait is what passes on a clock between its begin and its
// end, so that an open that comes in the middle of a fill is charged for the
// part of each cause that lies within its wait, and no other. A Table adds up
// the waits of each job, beside the time that the job's ranks took in all.
//
// Where a fill does several things at once, each of the causes that are under
// way gets an equal share of the time. For branches that began together this is
// their Shapley value in the length of the longest: all bear together what is
// only saved if all get faster, and the slowest alone bears what is saved if it
// gets faster alone.
package stall

import "time"

// A Cause is a thing that an open waits for.
type Cause uint8

const (
	Admission Cause = iota // a worker, or memory
	Overhead               // finding which rank reads what, and the daemon's other work
	Source                 // what the source sends
	Peer                   // what other nodes send
	Decode                 // unpacking, and copying from what is in memory
	Disk                   // the slabs of the disk tier

	// The ways of a source that is HDFS. What is marked as one of them is marked as
	// Source outside of that.
	ByFile // blocks of this host, by their files
	ByTCP  // blocks of this host, through their datanode
	Remote // blocks of other hosts

	// Memory is the part of Admission in which there was a worker, and no memory.
	Memory

	Causes // how many there are

	idle = Causes // nothing: a branch that waits for others
)

var names = [Causes]string{"admission", "overhead", "source", "peer", "decode", "disk", "by file", "by TCP", "remote", "memory"}

func (c Cause) String() string { return names[c] }

// whole is the cause that a cause is a part of: a way is one of Source, Memory of Admission, any
// other cause of itself.
func (c Cause) whole() Cause {
	switch {
	case c.isWay():
		return Source
	case c == Memory:
		return Admission
	}
	return c
}

func (c Cause) isWay() bool { return c >= ByFile && c <= Remote }

// A ByCause is a span of time, of which each cause has its part.
type ByCause [Causes]time.Duration

// Sum is the span.
func (s ByCause) Sum() (sum time.Duration) {
	for _, d := range s {
		sum += d
	}
	return sum
}

// Add returns both together.
func (s ByCause) Add(t ByCause) ByCause {
	for i, d := range t {
		s[i] += d
	}
	return s
}

// Sub returns s less t.
func (s ByCause) Sub(t ByCause) ByCause {
	for i, d := range t {
		s[i] -= d
	}
	return s
}
