// Package fs is the trees that ranks see: it turns a name into a batch, or into a file
// of the shuffle pool. It is the only importer of the FUSE library.
//
// # Two trees
//
// Each is mounted by itself, with a connection to the kernel of its own.
//
// A Tree has the datasets. It is read-only, speaks the library's raw protocol, and has
// numbers instead of inodes. All files are of it but pool*.go, scratch.go, written.go and
// opener.go.
//
// A PoolTree has the shuffle pool below it. Programs write there, so it has inodes, which
// the library keeps: one for each name that the kernel knows, of a type for each kind of
// file. They are names and attributes; the files are shuffle/pool's, behind the interfaces
// of pool.go, and so is all that nodes agree on. Inodes keep no state of a file beside
// that: what may be written, how much, and until when, is asked of a PoolJob, PoolAttempts
// or PoolBlobs at each request, and what is open is counted there until a handle's done
// is called. In the directories of a job on this node (scratch.go, poolattempts.go) a call
// is the same system call on the file of that name; an open file is a written, which the
// kernel reads and writes by itself. What is agreed has no system call: a rename is what
// makes of an attempt a map (poolstage.go), and of a file or directory of this node whose
// name begins with a dot a blob (poolblob.go); before it they are this node's alone, and
// after it they are all nodes', and never change.
//
// # Numbers instead of inodes
//
// The tree of datasets keeps no state per file. The first lookup of a directory below /datasets
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
