// Package policy decides which batches and chunks a node keeps, and in what form.
//
// Everything here is pure: no clock, no I/O, no randomness. A cache and a
// simulator ask the same policies, so the one predicts what the other does.
package policy
