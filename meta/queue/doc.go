// Package queue decides which unit of a shared queue a reader gets next.
//
// A unit is a batch; a reader is an open descriptor of a queue file. Reading a
// line takes a unit, reading the next line finishes it, closing the descriptor
// returns it. What was returned goes last, and what was returned too often the
// group sets aside. The scheduler lives beside the leader of the group, which asks
// it, has the group agree, and then tells it what was agreed. So all that it
// says is advice, and none of what it knows is needed for a unit to be done
// exactly once: a new leader makes one anew from what the group holds.
//
// There is no clock here. Time is given by callers, since any start.
package queue
