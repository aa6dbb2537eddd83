// Package cache turns a batch into a slab: one whole, immutable file that the
// kernel can serve to a rank without asking again.
//
// # The life of a slab
//
// A worker takes a file from a tier, fills it, and only then publishes it. An
// open finds it, or waits for it, and holds it until the rank closes. Once
// nobody holds it, it may be evicted: its backing id is given back and the
// file retired to its tier. A rank may still map it then, long after its
// close, and must go on seeing its bytes; so memory is used again only after
// the kernel has granted a write lease on the file, which it does when no
// mapping is left. Until then the slab is dying and its bytes count.
//
// What is wanted or held is an entry (entry.go). What is there and nobody holds
// is a status of 48 bytes (status.go) on a shelf (shelf.go), so that there can
// be very many.
//
// Memory has more slabs than the process may have files: what nobody has open can
// do without a descriptor and a mapping (park.go), if it is small in a slot of a
// file that it shares (pool.go).
//
// # What is ahead
//
// Every open also says where its rank stands in an order that is known to the
// end. Workers that have no open to serve fill what the ranks will ask for
// next, the most urgent first, as far ahead as the measured pace of fills and
// ranks makes useful and the memory budget allows. Nothing is queued: what is
// needed is looked up when a worker is free, so a rank that jumps or stops
// takes its wishes with it. The workers' time is shared by turns between jobs, and
// with those who open at random.
//
// # What is kept
//
// A planner says at which level each batch should be, from what is known of the
// readers' future (coming.go, planning.go, outlook.go); orders by worth, one for
// each reader, say what goes first when room is needed (keep.go, lanes.go). What memory gives up is packed,
// written to a disk, or dropped, as the planner wants it; and what is on a disk or
// packed comes back before it is opened (convert.go).
package cache
