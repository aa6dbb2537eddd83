// Package mapfiles answers one question: where on this node are the bytes of a map of a job, in
// memory or on the disk, whole, checked and by their name?
//
// In a place where a job has maps, a stage has by its number
//
//	NUMBER/maps/           attempts that were committed, and their tables
//
// A file is named by what was agreed of it, so that what a daemon finds after a restart is a
// map, or is not, by its name and its sum alone.
package mapfiles
