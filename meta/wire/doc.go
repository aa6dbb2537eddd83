// Package wire moves requests between the daemons of a cluster, with bulk data that is
// pulled or pushed by them: frames, sums, back-pressure, deadlines, the health of
// nodes, and how much is done at once. What is asked is its users' (Calls and Pushes,
// by number).
//
// # The wire
//
// A connection carries one request at a time, and then another. Which bytes belong
// to which request is thus TCP's to say, and so is back-pressure: a reader that
// takes nothing is not sent to. A request that is given up ends its connection.
//
//	request   64 bytes: what, how many runs, how many bytes, its sum
//	          count runs of 16 bytes, and their sum; none if a file is asked for,
//	          or instead of them a body of count bytes, and its sum
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
// connection goes on. A node of the release before knows no bodies, and hangs up: it is
// not asked with one.
//
// # Pushes
//
// A push is an exchange in which the side that asks sends as well: the frames of an
// answer the other way, whose sums run through the request too, each direction by its
// own. The side that is asked grants what it has room for, a number of bytes at a time,
// in a frame of its answer; nothing is sent before that, or beyond it. So
//
//   - neither side has a queue: what was granted and is not read yet is on the wire;
//   - a node that does not know the call, or refuses it, has been sent nothing that it
//     would have to tell from another request;
//   - one that fails in the middle says so at once, and reads no more than it granted
//     before the connection goes on: once something was granted, the side that asks
//     always sends an end, which follows the reason where it is not all;
//   - which side has to act next is known on both, and waited for as long as
//     for an answer: a slow disk at one end is no silence of the other.
//
// The answer comes when what was pushed is where it belongs, and ends as every answer
// does. Pushes wait for turns of their own, or a node that takes many copies could not
// serve its records.
//
// # Why not HTTP
//
// BenchmarkHTTP moves the same bytes by net/http, unchecked: over TLS on
// loopback 1.0 to 1.1 s of processor time for a GiB, both sides together, and
// 1.2 where records have 4 KiB. Here it is 1.1 and 1.4, of which 0.14 is the
// checksums'. Most of either is the kernel's and AES. So HTTP would save nothing
// once it checks; and checksums, signs of life, and errors in mid-stream that
// leave the connection of use would have to be framed inside it all the same.
package wire
