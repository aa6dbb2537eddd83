// Package control is how the rankfs command talks to the daemon that serves a
// mount: JSON over HTTP on a unix socket. One table, in routes.go, says what can
// be asked, which users may ask it, and what answers; the kernel says which user a caller is.
package control
