// Package datanode reads blocks from HDFS datanodes, with hdfs/v2.
//
// The library's reader does the hard parts: the protocol, its three kinds of SASL,
// the checksums. Its decisions are bad, and are made here instead: which replica is
// asked, for exactly which bytes, how long, and what happens when that fails.
// So each stream has a library client of its own, whose namenode is a function
// in this process (blocknamenode.go) that offers it one replica and the wanted range.
package datanode
