// Package kept answers one question: what does the cache of this node keep, and what have
// people said that it should?
//
// They pin views, warm them up and evict them, choose a policy, and have it learn from
// traces. Pins and traces last longer than the daemon: they are in files of its state.
// Nothing here is on the way of an open.
package kept
