// What goes through the pipe and the mapped file between a rank and its
// supplier. The paper (section 4.1 and 4.5) gives the roles and what a
// notification says, but no bytes; these are ours, and those of `rankfs supply`.
//
// Two text files list, a path a line, the mapped files and the named pipes. The
// i-th pair of supplier and client uses line i of both, and no other process does.
//
// One cycle of a pair:
//
//	client                                  supplier
//	open pipe O_WRONLY    (blocks until)    open pipe O_RDONLY
//	write request, close                    read request, close
//	open pipe O_RDONLY                      write the batch to the mapped file
//	  (blocks until)                        open pipe O_WRONLY
//	read notification, close                write notification, close
//	use the mapped bytes
//
// The client owns the bytes until it sends the next request. All numbers are
// little-endian. A request and a notification are each written by one write of
// fewer than PIPE_BUF bytes, so neither is ever seen in part.
#ifndef RANKFS_PROTOCOL_H
#define RANKFS_PROTOCOL_H

#include <stdint.h>

// A request: which batch is wanted, from 0. CLOSE_PAIR ends the pair and gets no
// answer.
struct request {
	uint64_t sequence;
};

#define CLOSE_PAIR UINT64_MAX

// A notification: where the batch lies in the mapped file. The sizes are those
// of the seven parts of an element (key, label, channels, height, width, encoded,
// data), one behind the other. A raw batch is one part, the seventh; if it is
// too large for 32 bits, total alone tells its size.
struct notification {
	uint64_t sequence; // of the request
	uint64_t offset;
	uint64_t total; // bytes
	uint32_t sizes[7];
	uint32_t status;
};

enum status { STATUS_OK = 0, STATUS_END = 1, STATUS_ERROR = 2 };

_Static_assert(sizeof(struct request) == 8, "request is 8 bytes");
_Static_assert(sizeof(struct notification) == 56, "notification is 56 bytes");

#endif
