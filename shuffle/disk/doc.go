// Package disk answers one question: does the disk of the shuffle pool take something, and does it
// still answer?
package disk
