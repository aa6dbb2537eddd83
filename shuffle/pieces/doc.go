// Package pieces answers one question: which piece of a map is that of which part, and are its
// bytes those that were committed?
package pieces
