// Package system has no code: its tests hold the daemon to what SEMANTICS.md
// promises, as a process of its own, on real mounts, with rank processes that
// map what it serves. They need root and /dev/fuse.
//
// A hung mount fails a test and never hangs it: every wait for a daemon has
// a deadline, and a daemon that outlives its test is killed, which ends every
// system call on its mount.
package system
