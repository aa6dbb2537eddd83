// Package device answers one question: how is a directory mounted by a /dev/fuse of its own?
package device
