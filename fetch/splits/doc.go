// Package splits answers one question: which node looks through which split of a source for
// the index that this one makes, and when is a split looked through again?
//
// A source says what its splits are, how one is looked through, and how another node is asked
// to do that. What is found in them comes in their order, whichever nodes found it, and is kept
// until the index is whole.
package splits
