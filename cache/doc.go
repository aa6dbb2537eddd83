// Package cache turns a batch into a slab: one whole, immutable file that the
// kernel can serve to a rank without asking again.
//
// # The life of a slab
//
// A worker takes a file from a tier, fills it, and only then publishes it. An
// open finds it, or waits for it, and holds it until the rank closes. Then it is
// idle, and may be evicted: its backing id is given back and the
// file retired to its tier. A rank may still map it then, long after its
// close, and must go on seeing its bytes; so memory is used again only after
// the kernel has granted a write lease on the file, which it does when no
// mapping is left. Until then the slab is dying and its bytes count.
//
// What is being filled or open is an entry (entry.go says in which states). What is
// idle is a status of 48 bytes in a table (idle.go), so that there can be very many.
// Memory has more slabs than the process may have files: what is idle can do without
// a descriptor and a mapping, if it is small in a slot of a file that it shares
// (descriptors.go).
//
// # Where to read on
//
// An open goes from open.go to slabs.go, where it finds the entry, and to follow.go,
// which notes where its rank is. One that has to wait is queued (queue.go). A worker
// (work.go) makes its slab (make.go, fill.go), for which room is found (admission.go) by
// evicting something else (victim.go says what, evict.go does it; makeway.go, if an open
// waits). Where the series copies
// from inputs, the worker makes each of these ready in the same way first (inputs.go).
//
// Files know each other one way only: what several name stands in the lowest of them.
//
// The lock, what it guards, and the order of locks are in guarded.go.
//
// # What is ahead
//
// Every open also says where its rank stands in an order that is known to the
// end. Workers that have no open to serve fill what the ranks will ask for
// next, the most urgent first, as far ahead as the measured pace of fills and
// ranks makes useful and the memory budget allows. Nothing of it is queued: what is
// missing is looked up when a worker is free (ahead.go), so a rank that jumps or stops
// takes its requests with it. The workers' time is shared fairly between jobs (usage.go),
// and with ranks that open at random.
//
// # What is kept
//
// A policy says at which level each batch should be, from what is known of the
// readers' future (choosing.go, outlook.go); orders by worth, one for each reader, say
// what goes first when room is needed (worth.go, heaps.go). What memory gives up is
// packed (packing.go), written to a disk (ondisk.go), or dropped, as the policy wants
// it; and what is on a disk or packed comes back before it is opened (mover.go).
package cache
