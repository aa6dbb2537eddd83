// Package turns answers one question: which job's turn is it to have some of what a node has
// little of: processors, memory to merge in, connections?
package turns
