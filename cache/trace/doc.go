// Package trace keeps what a reader opened, in the order in which it did, and
// learns from it when a reader that does the same, on a dataset of any size, will
// open something again.
package trace
