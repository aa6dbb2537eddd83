// Package uses answers one question: which jobs are in use on this node, and which have been unused
// for too long?
package uses
