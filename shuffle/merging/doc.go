// Package merging answers one question: what are the records of a part, one after the other, that
// a node makes of pieces of many maps, in as little memory as it has for that?
//
// Pieces that are in memory of this node are read where they are. Others come at once if there is
// room for them, else in portions.
package merging
