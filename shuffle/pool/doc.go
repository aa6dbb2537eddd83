// Package pool answers one question: what does this node have of the shuffle pool, and
// what may a program do with it?
//
// What the cluster agrees on is in meta/state: jobs, stages with their specs, and which
// attempt of each map has won. Here are the bytes. A job has a file system in memory of
// its own, which is its bound, which outlives the daemon, and which one umount frees. In
// it, by the stage's number, are
//
//	scratch/               files of programs on this node
//	blob/                  files that programs write, and rename to put blobs
//	NUMBER/attempts/       what map tasks write
//	NUMBER/maps/           attempts that were committed, as package mapfiles has them
//
// An attempt that is being committed has two names, and must not be written any more.
package pool
