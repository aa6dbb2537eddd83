// Package state has what the daemons of a cluster agree on: nodes, datasets, plans,
// leases of queues, and maps of the shuffle pool.
//
// Of datasets that is where their ranks read, and which plans are settled; of a queue which
// reader holds which unit; of a map which attempt has won, and where its copies are.
// It is a machine that commands are applied to, one after the other, in the order of a
// replicated log.
//
// It is pure. Two machines that were given the same commands are the same, to
// the byte of their snapshots, whatever the machine, the hour or the order of
// a map's keys. So a command carries all that a rule asks for: the wall clock
// of the leader that put it into the log, numbers that it drew. Time of the cluster
// is that of the latest command, even if it is earlier than that of the one before;
// what has expired stays expired.
//
// A node whose leader is lost does not know whether its command was taken, and sends
// it again. So the same command twice in a row changes nothing the second time, and
// its result is that of the first.
//
// A command that this release does not know cannot be left out: the others
// apply it. The machine then refuses everything from there on, and says that
// the node must be upgraded. For the same reason a rule that changes needs a
// new version of commands; so does a field. A machine knows two versions, its own
// and that of the release before. The cluster takes one of them, in log and
// snapshot, and Upgrade has it go over to the next when all nodes know that. Each version
// has its byte in the log and its snapshots, and its row of migrations if the state changes
// with it.
//
// The state is sections, each of which is one kind of agreed thing: its table, its
// commands, the right to send each and what each comes to, its reads, its frames in a
// snapshot, its bounds. The machine goes over the table of sections, and knows none by name. A command, a section,
// the state and a restorer are defined by one another, and so are the pool and its blobs;
// of all other files none refers back to one that refers to it.
//
// From version 4 on a command says which node sends it, and the machine knows
// what each may send: see Role.
package state
