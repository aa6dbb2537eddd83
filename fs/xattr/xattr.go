// Package xattr answers one question: what does the kernel get of extended attributes?
package xattr

import "github.com/hanwen/go-fuse/v2/fuse"

// Prefix begins the names by which programs know our attributes.
const Prefix = "user.rankfs."

// A List is the extended attributes of a file or directory, by their names without Prefix.
type List []struct{ Name, Value string }

// Get answers for the value of the attribute that programs know by a name.
func (l List) Get(name string, dest []byte) (uint32, fuse.Status) {
	for _, a := range l {
		if Prefix+a.Name == name {
			return Answer(dest, a.Value)
		}
	}
	return 0, fuse.ENOATTR
}

// Names answers for all names.
func (l List) Names(dest []byte) (uint32, fuse.Status) {
	var names string
	for _, a := range l {
		names += Prefix + a.Name + "\x00"
	}
	return Answer(dest, names)
}

// Answer copies a value to where the kernel has room for it, or says how long it is.
func Answer(dest []byte, value string) (uint32, fuse.Status) {
	if len(value) > len(dest) {
		return uint32(len(value)), fuse.ERANGE
	}
	return uint32(copy(dest, value)), fuse.OK
}
