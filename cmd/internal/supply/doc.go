// Package supply feeds programs that were written for named pipes and mapped
// files: one FIFO and one mapped file per rank, over which a client asks for
// a batch and is told when it lies in the mapped file.
//
// Both directions share the FIFO, so the two sides take turns:
//
//	client                              server
//	open WRONLY (waits for a reader)    request: open RDONLY, wait for bytes
//	write 8 bytes, close                read 8 bytes, close
//	open RDONLY (waits for a writer)    copy the batch into the mapped file
//	                                    answer: open WRONLY once a reader is there
//	read 56 bytes, close                write 56 bytes, keep the end open
//	open WRONLY (waits for a reader)    once they are read: close, then request
//
// Three rules keep one side from reading its own bytes, which a FIFO would
// gladly hand back:
//
//   - The server never holds both ends. With its reading end open it would be
//     its own reader; with its writing end open, a client that has just
//     written a request would not wait in its open for reading, and would
//     read the request back.
//   - It closes the reading end before it answers, so that a successful open
//     for writing proves that the client is there to read.
//   - It does not open the reading end again before its answer has left the
//     FIFO, either read or, when the client is gone, thrown away. Until then a
//     client that asks again waits in its open.
//
// A client may come between the server's last look for a request and its close of
// that end: it has asked, and waits to read, while the answer to a dead client is on
// its way. The server then finds bytes as it opens to write, and breaks the first
// rule: it keeps that end open while it reads them. Such a client may read its
// request back, and finds the end of the FIFO after it. A client whose request went
// with the close, as it had not opened to read yet, is told of the sequence that the
// dead one asked for: the server cannot see that request.
//
// All opens are O_NONBLOCK, waits go through the runtime's poller, and each
// has a deadline, except that for a request: that is the state in which a
// pair is ready for any client, and it ends with the context. Whatever goes wrong
// leads back to it.
package supply
