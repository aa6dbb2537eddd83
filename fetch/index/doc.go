// Package index is the table of a dataset's records: where each one stands
// and how long it is, in the order of the source, grouped into chunks.
//
// An index is made once per version of a source, kept in one file, and mapped.
// Nothing in it is proportional to the dataset on the Go heap: not the
// records, not the chunks, not the names of the files.
package index
