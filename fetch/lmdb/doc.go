// Package lmdb serves the values of an LMDB database as records.
//
// Keys are not looked at: the records are the values in the order of their
// keys. The file is read by its format, in Go and with every number checked;
// the C library only takes part in LMDB's locking (see Holds). Nothing is ever
// written to the database or created beside it.
package lmdb
