// Package meta is the vocabulary of rankfs: what a dataset is, what a view of
// it is, how a view's order is cut into steps and batches, which names are of one
// host, and which errors callers branch on.
//
// Everything here is a small value or a pure function of small values. A view
// says which rank reads which records without naming a node or a byte: two machines
// that agree on a view and on the number of records agree on every batch without
// talking.
package meta
