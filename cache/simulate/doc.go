// Package simulate runs a job on a virtual clock: what its epochs would take,
// and what its ranks would wait for, with other budgets, rates or policies.
//
// The decisions are not modelled but made, by the policies of package policy.
// What is modelled is the machinery around them, as package cache has it: a
// rank opens a batch, works on it for a while, closes it and opens the next;
// workers make ready what an open waits for, and otherwise what will be opened
// soonest, as far ahead as pace, memory and trust allow, beyond the end of an epoch
// too. What is made ready ahead takes the place only of what is worth less. Where
// several jobs take turns on a node, one of them is simulated.
//
// # Where bytes are
//
// Each partition has an owner, the node whose ranks would read it in the source's
// order if it were a batch. Where ranks read what is near, those of a step, or of an
// epoch of whole partitions, go to the ranks of their owners as far as these have
// room. Only its owner keeps it and fetches it from the source; other nodes ask
// the owner for what their batches need of it, and keep that until the batch is
// closed. A batch that is a whole partition of its own node is opened in place.
//
// # What moves them
//
// The source, each disk in each direction and each node's processors are shared
// evenly by their transfers. A transfer between nodes gets the smaller of its
// even shares of the two links. Nothing else costs time: copies within memory,
// the policy and the daemon itself are taken to cost none. So a prediction is
// a lower bound, and close to the truth where bytes are what a job waits for.
//
// Between two choices of levels the partition worth least makes room, as long as no batch
// that is made ready needs it. What a choice wants at another level is moved by
// one mover a node, from the slower side to the faster or back, without driving
// out what is worth more. Policies are told of less memory than there is, by what
// batches in use take of it.
//
// The outcome is the same on every machine: events at the same time happen in
// the order in which they were set off, and there is no randomness.
package simulate
