// Package daemon runs rankfs daemons, on the hosts of a test's cluster or on this one.
package daemon
