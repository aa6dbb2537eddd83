// Package wire moves requests and bulk answers between the daemons of a cluster:
// frames, sums, back-pressure, deadlines, the health of nodes, and how much is done
// at once. What is asked is its users' (Calls, by number).
//
// # The wire
//
// A connection carries one request at a time, and then another. Which bytes belong
// to which request is thus TCP's to say, and so is back-pressure: a reader that
// takes nothing is not sent to. A request that is given up ends its connection.
//
//	request   64 bytes: what, how many runs, how many bytes, its sum
//	          count runs of 16 bytes, and their sum; none if a file is asked for
//	frame     16 bytes: length, kind, code, a sum; then length bytes
//
// An answer is data frames, perhaps one that says why it failed, and an end.
// Its sums are of one xxh64 that runs through the request and all of the
// answer: each covers what came before it, and the first half of its own frame
// header. So a length is believed only after it was checked, and a bit
// flipped, or a frame lost, doubled, swapped or of another request, does not
// get past the next sum. Nothing is a success before the end's sum was right.
//
// While a node has nothing to send yet, it says so every few seconds: it may
// have to fetch a chunk, and should not be taken for dead.
//
// A call with an unknown number is answered with errors.ErrUnsupported, and its
// connection goes on.
//
// # Why not HTTP
//
// BenchmarkHTTP of cache/peers moves the same bytes by net/http, unchecked: over TLS on
// loopback 1.0 to 1.1 s of processor time for a GiB, both sides together, and
// 1.2 where records have 4 KiB. Here it is 1.1 and 1.4, of which 0.14 is the
// checksums'. Most of either is the kernel's and AES. So HTTP would save nothing
// once it checks; and checksums, signs of life, and errors in mid-stream that
// leave the connection of use would have to be framed inside it all the same.
package wire
