// Package slowdisk answers one question: does a disk still answer to the work that it was given?
package slowdisk
