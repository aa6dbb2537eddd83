// Package namenode is a client of HDFS namenodes, for metadata and block locations.
//
// hdfs/v2 reads data but cannot say which hosts hold a block, sets no deadline
// on a call, and keeps a dead connection. This client speaks the same protocol
// over the messages that hdfs/v2 registers, for the few calls that a reader
// needs, and WebHDFS where no namenode answers so.
//
// A call goes to the namenode that answered last. One that cannot be reached,
// is silent or in standby is passed over for the next, in rounds, until the
// call's deadline; every call may safely be made twice. Calls of one
// client share a connection for each namenode and do not wait for each other.
package namenode
