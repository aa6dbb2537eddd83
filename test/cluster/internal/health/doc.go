// Package health asks the daemons of a cluster over HTTP how they are.
package health
