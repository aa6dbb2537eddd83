// Package diskdir answers one question: may files be in a directory on a local disk, and how many
// bytes of them?
//
// A Place is where the directory is, as long as it is there; a Health says whether it
// is written to and read now; a Budget counts what it takes. What the files are, which of them last
// and what becomes of them when the disk fails is for the packages that keep them to say.
package diskdir
