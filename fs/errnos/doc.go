// Package errnos answers one question: which number does the kernel get of an error?
package errnos
