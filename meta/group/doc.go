// Package group keeps the nodes of a cluster of one mind: it puts the state
// machine of meta/state under Raft, carries what nodes ask of one another, and
// keeps as many voters as there should be.
//
// Raft's configuration is not something that anybody edits. The state machine
// says which nodes there are; the leader sees which of them answer; what Raft's
// configuration should be follows from both, and the leader takes one step
// towards it at a time. A node that was admitted is added, one that was removed
// is taken out, a voter that stays away is replaced.
package group
