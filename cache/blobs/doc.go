// Package blobs answers where bytes that must not be given up lie on local
// disks, whether they are still what was written, and how long they are kept.
//
// A blob has a key, and two files in a folder of one directory of the NVMe tier:
//
//	KEY.SUFFIX  the blob; it has this name only when it is whole and synced
//	KEY.part    one that is unfinished, and can be gone on with
//	KEY.sums    what the granules of either hash to
//
// The owner of blobs names folder and suffix, and fetches the bytes.
// Slabs and blobs share a directory's budget, floor and health. A slab may be
// given up at any time and is never synced; a blob makes slabs give way, stays
// for as long as it is used or wanted, and is found by its name after a restart.
// Granules that an earlier process wrote are compared with their sums before they
// are used for the first time.
package blobs
