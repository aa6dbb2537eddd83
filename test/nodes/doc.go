// Package nodes holds the tests of several daemons that work together, each on
// a host of its own.
package nodes
