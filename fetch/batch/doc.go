// Package batch fills a slab with the bytes of a batch.
//
// A plan (shuffle/plan) says which records a batch holds, an index (fetch/index)
// where each of them stands, and a Version joins both to the way to the bytes: the
// source, or the node that alone has it.
//
// # Down, and not up again
//
// A cache that misses a batch calls Batches.Fill, which takes one of these ways:
//
//   - Records are read from the source, if its records are cheap to read one by one
//     or its chunks would not stay in the cache.
//   - Whole chunks, where these are the batches, come from a node that read them
//     before, or from the source.
//   - Records are copied out of chunks that stay in the cache, each at the node that
//     owns it. At a chunk of this node Fill stops (Ranges): the cache gives it the
//     chunk's slab, for which it calls Version.FillChunk if it has none. That only reads
//     the source.
//   - The node that alone has the source sends the records.
//
// A Server gives other nodes the records for which they ask by the last two ways.
//
// Memory for payload is the caller's, or mapped outside of Go's heap.
package batch
