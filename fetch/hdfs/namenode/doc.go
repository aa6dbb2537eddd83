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
//
// # Where to read on
//
// What can be asked is in calls.go, but for directories (list.go) and patterns (glob.go, which
// pattern.go makes regular expressions of). The answers are the types of namenode.go, which
// status.go makes and checks.
//
// A question goes through ask.go around the ways to the namenodes: config.go says which there
// are, ways.go in which order they are tried, try.go tries one. What was wrong with it, and whether
// another namenode may do better, is in errors.go. When none answers look.go looks for the end of
// that, and for RPC while WebHDFS answers in its place.
//
// RPC goes over connections (conn.go), in packets (header.go, frame.go). A connection begins in
// greet.go: with Kerberos by a SASL exchange (sasl.go), for which proof.go gets a ticket. The login
// before that is by a keytab, or by what kinit wrote (cache.go), whose ticket renew.go renews. Later
// packets are signed or encrypted as both sides agree (wrapping.go, seal.go).
//
// WebHDFS makes one HTTP request after the other (web.go). webcalls.go answers by them as RPC would,
// in messages that webjson.go makes of JSON.
//
// A Config comes from Hadoop's configuration by conf.go, but for how to log in (kerberos.go).
package namenode
