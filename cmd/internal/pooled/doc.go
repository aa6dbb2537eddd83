// Package pooled answers one question: how do the tree of the shuffle pool and the cache
// know what shuffle/pool has, and how does that tree stay mounted?
package pooled
