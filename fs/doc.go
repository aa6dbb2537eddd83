// Package fs is the tree of datasets that ranks see: it turns a name into a batch.
//
// A Tree is read-only, speaks the raw protocol of the FUSE library, and has numbers instead of
// inodes. In one of its directories the shuffle pool is mounted, whose tree is pooltree's. All
// importers of the library are this package and those below it.
//
// # Numbers instead of inodes
//
// The tree keeps no state per file. The first lookup of a directory below /datasets
// gives it a run of inode numbers, and which rank, step and kind of file a number
// stands for is arithmetic within that run. Runs are never used twice, so a number
// that the kernel remembers from a dropped view is ESTALE, upon which the kernel
// looks the path up again; it never means another file.
//
// # What the kernel demands
//
//   - An inode whose file is open by passthrough must be opened by passthrough,
//     to the same backing file, by every process until the last handle closes. The
//     whole mount uses one mode, probed once; and a slab that is open stays its
//     batch's slab.
//   - The backing file's size counts, not st_size: a slab is exactly its batch.
//   - The mount of datasets is read-only for the kernel too. Otherwise every read makes it
//     forget the access time, and the next fstat asks the daemon: 28 us.
//   - Notifications wait for requests under way, so they are never sent from a
//     request's handler, nor under a lock that a handler takes.
//   - The daemon never opens, stats or maps anything below its own mount.
package fs
