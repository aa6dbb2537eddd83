// Package sequence decodes Hadoop SequenceFiles, split by split, from streams that its
// caller opens.
//
// A file is a header and then records, each a key and a value. At intervals a
// marker stands between them that the header announced: four bytes 0xff and 16
// that the writer chose at random. A reader that begins in the middle of a file
// searches for the next marker. Values may be compressed one by one, or in
// blocks of many, each behind a marker.
//
// A record of a dataset is a value; keys are skipped. The payload of a value of
// class BytesWritable or Text is its contents, without the length that Hadoop puts
// before them. The payload of any other class is its serialised bytes.
//
// A file may be read in splits, each by a node near its bytes. Split [from, to) has
// the records between the first marker that begins at or after from, or the
// header if from is 0, and the first that begins at or after to. However a
// file is cut, each record is in exactly one split.
//
// Files are hostile: a length in a file is used only after a comparison with the
// size that the file can hold, and no length decides how much memory is allocated.
package sequence
