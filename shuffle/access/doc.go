// Package access answers one question: may a file of a job be written, is it being committed, or
// given up?
package access
