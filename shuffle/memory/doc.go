// Package memory answers one question: how much of the memory that jobs of a node may have
// together may each have now?
package memory
