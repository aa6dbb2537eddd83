// Package admin answers one question: what does an admin or user ask of a running
// daemon, and what does it say?
//
// An Admin implements control.Node, for the command, and gives the files below
// /.rankfs. It is parts, each with its own subject: datasets, reports of which rank reads what
// (planning), queues, the members of the cluster and the shuffle pool; what the cache keeps is
// told by package kept. Above these the status of the daemon, what is not as it should be
// (faults), and how jobs are supplied are told of several of them. Each part has in its fields
// all that it asks. Nothing here is on the way of an open.
package admin
