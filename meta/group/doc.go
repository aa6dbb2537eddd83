// Package group has the nodes of a cluster agree: it puts the state machine of
// meta/state under Raft, carries what nodes ask of one another, and keeps as many
// voters as there should be.
//
// Raft's configuration is not edited by hand. The state machine says which nodes there
// are; the leader sees which of them answer; what Raft's configuration should be follows
// from both, and the leader makes one change towards it at a time. A node that was admitted
// is added, one that was removed is taken out, a voter that stays away is replaced.
//
// # Where to read on
//
// A command goes from commands.go to the leader, by leadercalls.go if that is another
// node, and there through execute.go into Raft (replica.go). It comes back on all nodes
// by fsm.go, which has the state machine execute it.
//
// What Raft keeps is in store.go: the log (journal.go), snapshots, and how far the log is
// agreed on (agreed.go). What Raft sends goes through transport.go and stream.go. Calls
// between nodes are in calls.go, on connections of dial.go.
//
// A leader's rounds are in duties.go: which nodes answer (health.go, liveness.go), whose
// clock is wrong (clocks.go), which version all nodes speak (upgrade.go), which nodes vote
// (membership.go, by the rules of voters.go), which have the authority's key (keys.go).
//
// A node comes in by application.go and admission.go, says that it was started by
// beginning.go (greeter.go asks, arrivals.go answers), keeps its certificate by
// certificate.go, and goes by removal.go. One whose log is damaged is taken back by
// recovery.go.
package group
