// Package hdfs is the source of datasets that are in HDFS: files, directories
// and patterns, as lines, records of one length, whole files, sequence files,
// or an LMDB database.
//
// Package namenode tells where blocks are, package datanode reads them. Each has its
// own deadlines; nothing in this package waits without one.
package hdfs
