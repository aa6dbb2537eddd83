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
//
// # Where to read on
//
// Programs write attempts past the daemon (written.go), which sends them ahead to other nodes
// meanwhile (tail.go). A rename comes to commit.go: the attempt is sealed (sealing.go, and
// divided.go where the pool puts its records in order), copied (copy.go, sendcopy.go), and agreed
// on. Blobs are committed as maps of a stage that no program sees (blob.go).
//
// An open of a part comes to parts.go, which finds what its pieces are (part.go, columns.go). A Maker
// has it filled with them, from copies of this node (copies.go) or from other nodes (ask.go). What
// other nodes ask is answered in answer.go.
//
// What the pool does without being asked begins in follow.go: maps leave memory for the disk
// (spill.go), get copies that they lack (repair.go), and go when they are needed no more (sweep.go);
// the cluster is told of those that are lost (losses.go). The order of locks is in pool.go.
package pool
