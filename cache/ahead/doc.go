// Package ahead says how much is to be made ready before it is asked for: how many
// steps ahead of a reader, and how many fills at a time.
//
// Everything here is pure, so that a cache and a simulator do the same.
package ahead
