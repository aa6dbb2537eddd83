// Package assign decides which rank reads which position of a step or of an
// epoch, so that as much as possible is read on a node that holds it.
//
// Everything here is a pure function of its arguments and works with whole
// numbers alone: nodes that agree on a plan's inputs agree on every batch
// without talking. It never changes the order of an epoch or how much a rank
// reads; it only says which rank reads which positions of a step.
//
// # How
//
// Positions that the same nodes hold are one group. Groups send flow to the
// nodes that hold them, a node takes as much as its ranks read, and a maximum
// flow is the most that can be read locally. The search for it does not begin
// from nothing but from assign=strict, and then moves what has to move: a
// division that is as local as any is left as it is. So one node alone, an
// unknown placement, or a file that every node holds are read in contiguous
// shares, and a source's own order stays sequential where it can.
//
// Whole epochs of chunks also count racks: a chunk costs 0 where a host holds
// it, 1 in the rack of one, 2 elsewhere, and the sum is the least possible.
//
// # Why equal counts, not equal bytes
//
// Ranks of a step read equally many positions whatever their bytes. A program
// takes the mean over a step's records as the mean over its ranks, which is
// right only if all have as many; shapes of arrays are counts; and a resumed
// job finds its place by counting. Shares that differ would change results to
// save time. Nor do bytes weigh which records are local: that makes the flow a
// matching with arbitrary weights, many times as dear, for a gain only where
// the records of one step differ widely, and then the larger records would go
// to other ranks than the smaller, systematically.
package assign
