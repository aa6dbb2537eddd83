// Package gathering answers one question: which node is asked for pieces of maps, and which next
// when one does not give them?
package gathering
