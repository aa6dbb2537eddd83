// Package diskdir answers one question: how does a daemon have files in a directory on a local disk,
// which may fill up, fail or go away?
//
// A Place is where the directory is, as long as it is there; a Health says whether it is written to
// and read now; a Budget counts what it takes; a File is one that is made in it, to last or not. What
// the files are, and what becomes of them when the disk fails, is for the packages that keep them to
// say.
package diskdir
