// Package node answers one question: how is a daemon put together, and taken apart?
//
// It makes the parts, which know each other by small interfaces or not at all, and runs
// what each of them does without being asked: a member of the cluster (member), the
// catalog, the views, the cache, what people have it keep (kept), the tree and the commands'
// side (admin).
package node
