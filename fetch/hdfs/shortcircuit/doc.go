// Package shortcircuit reads blocks by their files where the datanode is on this
// host: the datanode passes the block's two open files, bytes and checksums, over
// a UNIX socket (HDFS's short-circuit reads), and no byte of the block goes
// through a socket or the datanode's process.
//
// Hadoop's own client shares memory with the datanode, in which that takes back
// what it passed. The files themselves tell the same without it: a block that is
// deleted, moved, appended to or replaced changes the ctime of the files it was
// in, so each read begins with a look at it (file.go).
package shortcircuit
