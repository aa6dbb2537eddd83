// Package mounts knows which rankfs daemons run on this machine and what the
// kernel says of their mount points.
//
// A run directory holds two files for each live mount: ID.json says which process
// serves which mount, ID.sock is the control socket. Nothing in this package looks up
// a path below a mount point, which would wait for the daemon behind it.
package mounts
