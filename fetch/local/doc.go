// Package local reads records from files on this node: the lines of a file,
// its pieces of one length, the file as a whole, or the files of a tree.
//
// A version of a file is its inode, size, and times of change. The kernel
// sets them before any changed byte can be read, so a read that finds them
// as they were, after its copy, has copied that version. A process that changes a
// file through a writable mapping defeats this: the kernel notes the time of such a
// change once for many.
package local
