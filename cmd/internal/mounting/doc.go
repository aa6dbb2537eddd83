// Package mounting answers how a mount is to be made, from flags or from fstab, and
// makes it in the background: Options are read, completed and become the
// configuration of a node.
package mounting
