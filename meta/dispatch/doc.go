// Package dispatch has the cluster agree on which batch of a queue a reader gets next,
// wherever it reads.
//
// A queue hands out the batches of a view to the readers that ask. Unit u of a view with
// R ranks is batch u/R of rank u%R. Three parties meet here:
//
//   - A [Reader] is one open queue file, on any node. It asks the leader to finish
//     the unit that it holds and to choose another one (a [TakeRequest]).
//   - The [Leader] answers on the node that leads the cluster. For each queue it has
//     a queueLeader, which asks a [queue.Scheduler] for advice.
//   - The cluster's state (package state) decides. Advice counts for nothing until a
//     state.TakeUnit was agreed to, and everything that a queueLeader knows can be
//     restored from that state by the next leader.
//
// So a unit has one finisher, whichever nodes fail: a reader repeats its request
// under the same number until it gets a reply, and the state machine executes each
// number once.
package dispatch
