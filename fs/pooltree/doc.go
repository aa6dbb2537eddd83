// Package pooltree is the tree of the shuffle pool, which programs see and write: it turns a name
// into a file of a job.
//
// It is mounted by itself, below the mount of datasets, with a connection to the kernel of its
// own: that of the datasets is read-only, and is fast because of that.
//
// A Tree has inodes, which the library keeps: one for each name that the kernel knows, of a type
// for each kind of file. They are names and attributes; the files are shuffle/pool's, behind the
// interfaces of pool.go, and so is all that nodes agree on. Inodes keep no state of a file beside
// that: what may be written, how much, and until when, is asked of a Job, Attempts or Blobs at each
// request, and what is open is counted there until a handle's done is called. In the directories of
// a job on this node (scratch.go, attempts.go) a call is the same system call on the file of that
// name, which an opener finds; an open file is a written, which the kernel reads and writes by
// itself. What is agreed has no system call: a rename is what makes of an attempt a map (stage.go),
// and of a file or directory of this node whose name begins with a dot a blob (blob.go); before it
// they are this node's alone, and after it they are all nodes', and never change.
//
// # What the kernel demands
//
//   - An inode that is open without passthrough must not be opened with it (backing.go).
//   - Notifications wait for requests under way, so they are never sent from a
//     request's handler (names.go).
//   - The daemon never opens, stats or maps anything below its own mount.
package pooltree
