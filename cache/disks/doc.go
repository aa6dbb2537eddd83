// Package disks is the tier of slabs in directories of local disks.
//
// # Names are the truth
//
// A slab's file has a name that says what it holds, how long it is, and what
// its bytes and that hash to. It gets the name by a rename when it is complete,
// so a directory is its own index: what a crash left unfinished has no such
// name. The index file beside the slabs spares a restart the looking through
// all names; what it says is believed only until the names have been seen.
//
// # What a power failure leaves
//
// Nothing orders a slab's bytes before its name: no file is ever synced, as
// slabs can be fetched again and a sync would stop every writer. So after a
// power failure a name may stand for zeros, or for less. It is enough that no
// daemon serves a byte that it has neither written nor hashed itself: the
// bytes of an earlier daemon are hashed at their first open, and what is not
// what its name says is removed. The daemon that knew better is gone with the
// power. The same first hash finds what happened to a disk in between.
//
// # What a disk does meanwhile
//
// Bytes that are in the page cache are those that were hashed or written, if the
// file's ctime says that nobody has written to it since. When an open finds that
// some have left it, all are read and hashed again, which brings back for the
// ranks what they are about to read. What is not found is what the disk gives
// for a page that left and came back between two opens, or within Config.Trust.
//
// # Disks that fail
//
// Each directory has its own budget, lock and health. One that refuses a write
// is not written to for a while; one that fails a read, or is not there, or
// does not answer, is not read from either. The others carry on, and what was
// on it is fetched again.
package disks
