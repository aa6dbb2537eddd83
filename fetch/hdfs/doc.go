// Package hdfs is the source of datasets that are in HDFS: files, directories
// and patterns, as lines, records of one length, whole files, sequence files,
// or an LMDB database.
//
// Package namenode tells where blocks are, package datanode reads them. Each has its
// own deadlines; nothing in this package waits without one.
//
// # Where to read on
//
// A source is opened in open.go with a form, which says how files are divided into records
// (forms.go, lines.go, sequences.go). Its index is made from scan.go on: files are listed
// (listing.go), their blocks become splits (divide.go), and package splits has these looked
// through, here and on other nodes (find.go). What is in an earlier index already is taken from
// there (earlier.go).
//
// A read begins in read.go and goes by the form to a reader there, which knows by places.go where
// blocks are, or asks the namenode, and has package datanode read them. While a source is attached
// watch.go finds out whether its files are still those of the index, and whereabouts.go on which
// hosts its chunks are by now.
//
// An LMDB (lmdb.go) is copied whole (copied.go) to where Copies keeps it (copies.go), and read there.
// A cluster is made in connect.go, with its login (login.go), and with what guards connections to its
// datanodes (guardian.go).
package hdfs
