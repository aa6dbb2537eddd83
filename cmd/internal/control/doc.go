// Package control is how the rankfs command talks to the daemon that serves a
// mount: JSON over HTTP on a unix socket. One table, rights, says which users may
// use which route; the kernel says which user a caller is.
package control
