// Package disks is the tier of slabs in directories of local disks.
//
// # Names are the truth
//
// A slab's file name holds its key, its length, and a hash of both and its bytes.
// The file gets that name by a rename when it is complete, so a directory is its own
// index: a file that a crash left unfinished has no such name. The index file beside
// the slabs lets a restarted daemon serve before it has listed all names; it is
// trusted only until they are listed.
//
// # What a power failure leaves
//
// Nothing orders a slab's bytes before its name: it is not synced, as
// slabs can be fetched again and a sync would stop every writer. So after a
// power failure a name may stand for zeros, or for less. It is enough that no
// daemon serves a byte that it has neither written nor hashed itself: the
// bytes of an earlier daemon are hashed at their first open, and what is not
// what its name says is removed. The daemon that knew better is gone with the
// power. The same first hash finds what happened to a disk in between.
//
// # What a disk does meanwhile
//
// Bytes in the page cache are those that were hashed or written, if the file's ctime
// shows no write since. When an open finds that some pages have left the cache, it
// reads and hashes the whole slab again, which also brings back the pages that a rank
// is about to read. One error goes unnoticed: wrong bytes from the disk for a page
// that left and came back between two opens, or within Config.Trust.
//
// # Disks that fail
//
// Each directory has its own budget, locks and health. One that refuses a write
// is not written to for a while; one that fails a read, or is not there, or
// does not answer, is not read from either. The others carry on, and what was
// on it is fetched again.
//
// # Files that are not slabs
//
// Others keep files in folders of the same directories, within the same budgets and
// floors (Reservation): slabs make way for them, and they are not given up. They are made
// as slabs are (File), but they last: when one has its name it is on the disk.
package disks
