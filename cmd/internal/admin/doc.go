// Package admin answers one question: what does an admin or user ask of a running
// daemon, and what does it say?
//
// An Admin implements control.Node, for the command, and gives the files below
// /.rankfs. It is parts, each with its own subject: datasets, the status and load of the
// daemon, reports of which rank reads what (planning), queues and the members of the
// cluster; what the cache keeps is told by package kept. They share what they look at
// (daemon) and nothing else. Nothing here is on the way of an open.
package admin
