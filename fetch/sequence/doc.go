// Package sequence decodes Hadoop SequenceFiles.
//
// A file is a header and then records, each a key and a value. At intervals a
// marker stands between them that the header announced: four bytes 0xff and 16
// that the writer chose at random. Whoever begins in the middle of a file
// searches for the next marker. Values may be compressed one by one, or in
// blocks of many, each behind a marker.
//
// A record of a dataset is a value; keys are skipped. What a value of class
// BytesWritable or Text holds is its payload, without the length that Hadoop
// puts before it. Of any other class the serialised bytes are the payload.
//
// A file may be read in parts, by whoever is near to each. Part [from, to) has
// the records between the first marker that begins at or after from, or the
// header if from is 0, and the first that begins at or after to. However a
// file is cut, each record is in exactly one part.
//
// Files are hostile: no length in them is believed before it was compared with
// what the file can hold, and none decides how much memory is taken.
package sequence
