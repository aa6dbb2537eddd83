// Package record answers one question: which records are in these bytes, to which part does
// each belong, and in which order do they stand?
//
// A map that its writer has not divided is divided once, when it is committed: its records
// are grouped by part, and sorted and combined in each. What a map has of a part is a run.
// A part is its runs one after the other, or if it has an order, merged. Both are pure
// functions of bytes and a spec, so that every copy, on every node, and every execution of a job
// has the same.
//
// The bytes are the caller's, and so is the memory in which they are put in order: nothing
// that grows with the records is on Go's heap.
package record
