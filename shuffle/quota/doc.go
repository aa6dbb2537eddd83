// Package quota answers one question: how many bytes may the files of a job on this node have
// still, of those that its maps may have in all their copies on all nodes?
package quota
