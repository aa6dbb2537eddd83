// Package uses answers one question: which jobs are in use on this node, and which has nobody used
// for too long?
package uses
