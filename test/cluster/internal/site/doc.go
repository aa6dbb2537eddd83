// Package site says what a cluster consists of: its hosts, what runs on them,
// where their files are, and how Hadoop is told. The keeper builds what it
// says and tests find their way by it.
package site
