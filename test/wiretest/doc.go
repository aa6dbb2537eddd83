// Package wiretest has connections, servers and clients for tests of what goes between
// nodes by package wire.
package wiretest
