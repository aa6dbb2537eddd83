// Package failure answers what a user reads when a command did not do its work,
// and which exit code a script branches on.
package failure
