// Package shortcircuit reads blocks by their files where the datanode is on this
// host (HDFS's short-circuit reads).
//
// The datanode passes the block's two open files, bytes and checksums, over a UNIX
// socket, and no byte of the block goes through a socket or the datanode's process.
//
// Hadoop's own client shares memory with the datanode, in which the datanode revokes
// files that it passed. This package uses the files themselves instead: a block that
// is deleted, moved, appended to or replaced changes the ctime of its files, so each
// read begins with a check of that (file.go).
package shortcircuit
