// Package packing answers one question: how do the bytes of a stage with compress= in its spec
// go between nodes?
package packing
