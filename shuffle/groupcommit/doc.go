// Package groupcommit answers one question: which commits of a node does the cluster agree on
// together?
package groupcommit
